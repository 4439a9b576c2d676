"""Messages of processes that may say anything."""

import json
import os
import socket
import unittest

from kernelmill_torch import channel


def descriptors():
    return len(os.listdir("/proc/self/fd"))


class Channel(unittest.TestCase):
    def setUp(self):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.null = os.open("/dev/null", os.O_RDONLY)

    def tearDown(self):
        self.ours.close()
        self.theirs.close()
        os.close(self.null)

    def test_a_message_travels_with_its_descriptors(self):
        channel.send(self.theirs, {"op": "some", "n": [1, 2.5]}, (self.null,))
        message, received = channel.receive(self.ours, 5.0)
        self.assertEqual((message, len(received)), ({"op": "some", "n": [1, 2.5]}, 1))
        self.assertFalse(os.get_inheritable(received[0]))
        os.close(received[0])

    def test_what_is_no_message_keeps_no_descriptor(self):
        before = descriptors()
        for data in b"nothing", b"[1]", b"[" * 100_000, b"\xff", b"{" * 10:
            socket.send_fds(self.theirs, [data], [self.null] * 3)
            with self.assertRaises(ValueError):
                channel.receive(self.ours, 5.0)
        self.assertEqual(descriptors(), before)

    def test_characters_that_are_none_become_question_marks(self):
        channel.send(self.theirs, {"error": "a\ud800b\u00e9\0"})
        data = self.ours.recv(1000)
        self.assertEqual(json.loads(data.decode("utf-8")), {"error": "a?b\u00e9\0"})

    def test_a_peer_that_does_not_read_is_not_waited_for(self):
        with self.assertRaises(channel.TimedOut):
            for _ in range(10_000):
                channel.send(self.ours, {"text": "x" * 1000}, wait=False)

    def test_no_peer(self):
        self.theirs.close()
        with self.assertRaises(channel.Closed):
            channel.receive(self.ours, 5.0)
        with self.assertRaises(channel.Closed):
            channel.send(self.ours, {})

    def test_nothing_said(self):
        with self.assertRaises(channel.TimedOut):
            channel.receive(self.ours, 0.0)


if __name__ == "__main__":
    unittest.main()
