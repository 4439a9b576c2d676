#!/usr/bin/env python3
"""Records commands in a terminal and draws what they print as an SVG.

  docs/pictures/record.py BIN_DIR OUT.svg [COMMAND...]

BIN_DIR holds the program kernelmill. The commands run one after another by bash, in a pseudo-terminal and in an
empty directory. Without commands it records the quickstart. Every line of the picture is a line that
was printed. It plays once, four times faster than the run went; a viewer without animation shows the last state.
"""

import fcntl
import html
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import time

COLUMNS = 118
SPEED = 4  # the picture plays so many times faster than the run went
SHORTEST = 0.2  # seconds of the picture that a state of a line stays
CELL, LINE, MARGIN, BAR = 7.6, 17, 16, 30  # pixels; CELL is the advance of a 12.6 px monospaced font
QUICKSTART = ["kernelmill run quickstart run.name=first", "kernelmill show first/g3"]
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "1": "bold", "2": "#8b949e"}


class Screen:
    """Lines of a terminal that knows colours, carriage return and erase-to-end. Keeps every state that a line had."""

    def __init__(self):
        self.lines = [[(0.0, [])]]  # of each line: (second, cells), the latest last
        self.column, self.style, self.second = 0, "", 0.0

    def _cells(self):
        states = self.lines[-1]
        if states[-1][0] != self.second:
            states.append((self.second, list(states[-1][1])))
        return states[-1][1]

    def newline(self):
        self.lines.append([(self.second, [])])
        self.column = 0

    def put(self, character):
        if self.column == COLUMNS:
            self.newline()
        cells = self._cells()
        while len(cells) <= self.column:
            cells.append((" ", ""))
        cells[self.column] = (character, self.style)
        self.column += 1

    def feed(self, text, second):
        self.second = second
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.|\n", text):
            if part == "\n":
                self.newline()
            elif part == "\r":
                self.column = 0
            elif part == "\x1b[K":
                del self._cells()[self.column :]
            elif part.startswith("\x1b["):
                codes = part[2:-1].split(";") if part.endswith("m") else []
                for code in codes:
                    self.style = COLOURS.get(code, "" if code in ("", "0") else self.style)
            elif part >= " ":
                self.put(part)


def record(commands, bin_dir):
    """What the commands print, on a screen; raises SystemExit when one fails."""
    screen, clock = Screen(), 0.0
    environment = {
        **os.environ,
        "PATH": f"{bin_dir}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS),
    }
    environment.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            screen.style = "bold"
            screen.feed(f"$ {command}\n", clock)
            screen.style = ""
            child, terminal = pty.fork()
            if child == 0:
                os.chdir(folder)
                os.execvpe("bash", ["bash", "-c", "sleep 0.1; " + command], environment)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
            before, pending = time.monotonic(), b""
            while True:
                try:
                    pending += os.read(terminal, 65536)
                except OSError:  # Linux says so when the child has closed its end
                    break
                now = time.monotonic()
                clock += (now - before) / SPEED
                before = now
                text = pending.decode(errors="ignore")
                cut = text.rfind("\x1b")
                whole = text if cut < 0 or re.match(r"\x1b\[[0-9;]*[A-Za-z]", text[cut:]) else text[:cut]
                pending = text[len(whole) :].encode()
                screen.feed(whole.replace("\r\n", "\n"), clock)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.close(terminal)
            if code != 0:
                sys.exit(f"record.py: exit code {code}: {command}")
            screen.newline()
            clock += 0.5
    while len(screen.lines) > 1 and not screen.lines[-1][-1][1]:
        screen.lines.pop()
    return screen, clock


def spans(cells):
    """A line's text as tspans, one for each run of one style."""
    result, at = "", 0
    while at < len(cells):
        style, end = cells[at][1], at
        while end < len(cells) and cells[end][1] == style:
            end += 1
        text = html.escape("".join(c for c, _ in cells[at:end]))
        how = ' font-weight="bold"' if style == "bold" else f' fill="{style}"' if style else ""
        result += f'<tspan x="{MARGIN + at * CELL:.1f}"{how}>{text}</tspan>'
        at = end
    return result


def draw(screen, seconds):
    """The SVG's text."""
    width = COLUMNS * CELL + 2 * MARGIN
    height = BAR + len(screen.lines) * LINE + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img"'
        f' font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="12.6" fill="#e6edf3">',
        "<title>Terminal recording of a run</title>",
        "<style>text{white-space:pre}.o{opacity:0}@keyframes on{from{opacity:0}to{opacity:1}}"
        "@keyframes flash{0%,100%{opacity:1}}"
        "@media(prefers-reduced-motion:reduce){*{animation:none!important}}</style>",
        '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
        *(
            f'<circle cx="{20 + 18 * i}" cy="17" r="5" fill="{c}"/>'
            for i, c in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        ),
    ]
    for number, states in enumerate(screen.lines):
        y = BAR + (number + 1) * LINE
        shown = []
        for state in (x for x in states if x[1]):
            if not shown or state is states[-1] or state[0] - shown[-1][0] >= SHORTEST:
                shown.append(state)
        for index, (second, cells) in enumerate(shown):
            last = index + 1 == len(shown)
            until = seconds if last else shown[index + 1][0]
            kind = (
                f'style="animation:on 1ms {second:.2f}s backwards"'
                if last
                else f'class="o" style="animation:flash {max(until - second, 0.01):.2f}s {second:.2f}s"'
            )
            out.append(f'<text y="{y}" xml:space="preserve" {kind}>{spans(cells)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    screen, seconds = record(sys.argv[3:] or QUICKSTART, os.path.abspath(sys.argv[1]))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(screen, seconds))
    print(f"{sys.argv[2]}: {len(screen.lines)} lines, {seconds:.1f} s")


if __name__ == "__main__":
    main()
