"""Two machines of one test: network namespaces with a link between them, and sshd in the far one.

The far machine has a home and a temporary folder of its own; programs and libraries are this machine's.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

PROGRAM = os.path.join(os.environ["KERNELMILL_BIN_DIR"], "kernelmill")
SKIP = 77
HERE, THERE, PORT = "10.77.0.1", "10.77.0.2", 2222


def why_not():
    """The reason why this machine cannot have two namespaces and sshd; None where it can."""
    if os.geteuid() != 0:
        return "it needs root for namespaces and sshd"
    for program in ("sshd", "ssh", "ssh-keygen", "ip", "unshare", "nsenter"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            return f"{program} is not installed (launch/packages.sh test)"
    done = subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no namespaces: {done.stderr.strip()}"


def enter_a_namespace():
    """This process and its children get a network and mounts of their own."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, clone_newnet = 0x20000, 0x40000000
    if libc.unshare(clone_newns | clone_newnet) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


class TwoHosts:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="two_hosts_")
        self.root = pathlib.Path(self.folder.name)
        self.home, self.far = self.root / "home", self.root / "far"
        for x in (self.home, self.far):
            x.mkdir()
        # A process that holds the far network.
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo ready; read _"], stdin=-1, stdout=-1)
        self.holder.stdout.readline()
        pid = str(self.holder.pid)
        for line in (
            "ip link set lo up",
            f"ip link add near0 type veth peer name far0 netns {pid}",
            f"ip addr add {HERE}/24 dev near0",
            "ip link set near0 up",
            f"nsenter -n -t {pid} ip link set lo up",
            f"nsenter -n -t {pid} ip addr add {THERE}/24 dev far0",
            f"nsenter -n -t {pid} ip link set far0 up",
        ):
            subprocess.run(line.split(), check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.root / name], check=True)
        (self.root / "authorized_keys").write_text((self.root / "key.pub").read_text())
        host_key = " ".join((self.root / "host_key.pub").read_text().split()[:2])
        (self.root / "known_hosts").write_text(f"[{THERE}]:{PORT} {host_key}\n")
        (self.root / "sshd_config").write_text(
            f"Port {PORT}\nListenAddress {THERE}\nHostKey {self.root}/host_key\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {self.root}/authorized_keys\nPasswordAuthentication no\nUsePAM no\n"
            f"PermitRootLogin yes\nLogLevel VERBOSE\nMaxStartups 100\nAcceptEnv *\n"
            f"SetEnv HOME={self.far} XDG_CACHE_HOME={self.far}/cache TMPDIR={self.far}/tmp FAR_SIDE=yes\n"
        )
        (self.far / "tmp").mkdir()
        self.config = self.root / "ssh_config"
        self.config.write_text(
            f"Host far gpu-box\n  HostName {THERE}\n  Port {PORT}\n  User root\n  IdentityFile {self.root}/key\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.root}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
            "Host stranger\n  HostName 10.77.0.2\n  Port 2222\n  User root\n  UserKnownHostsFile /dev/null\n"
            "Host nowhere\n  HostName 10.77.0.2\n  Port 1\n  User root\n"
            f"Host locked\n  HostName {THERE}\n  Port {PORT}\n  User root\n  IdentityFile /dev/null\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.root}/known_hosts\n"
        )
        sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        self.log = open(self.root / "sshd.log", "w+")
        words = ["nsenter", "-n", "-t", pid, sshd, "-D", "-e", "-f", self.root / "sshd_config"]
        self.sshd = subprocess.Popen(words, stderr=self.log, stdin=subprocess.DEVNULL)
        while "Server listening" not in (self.root / "sshd.log").read_text():
            if self.sshd.poll() is not None:
                raise RuntimeError((self.root / "sshd.log").read_text())
        self.cache = self.far / "cache" / "kernelmill" / "remote"

    def environment(self, **more):
        result = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KERNELMILL_SSH": f"ssh -F {self.config}",
            "LC_ALL": "C.UTF-8",
        }
        if "KERNELMILL_PYTHON" in os.environ:
            result["KERNELMILL_PYTHON"] = os.environ["KERNELMILL_PYTHON"]
        return {**result, **more}

    def link(self, state):
        subprocess.run(["ip", "link", "set", "near0", state], check=True)

    def connections(self):
        """The processes of sshd that serve a connection: the children of the one that listens."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1]) == self.sshd.pid:
                        found.append(int(entry.name))
                except (OSError, IndexError):
                    pass
        return found

    def kill_connections(self):
        for pid in self.connections():
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
            for each in [*map(int, children.stdout.split()), pid]:
                try:
                    os.kill(each, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def sessions(self):
        folder = self.cache / "sessions"
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def close(self):
        for process in (self.sshd, self.holder):
            process.kill()
            process.wait()
        self.holder.stdin.close()
        self.holder.stdout.close()
        self.log.close()
        self.folder.cleanup()
