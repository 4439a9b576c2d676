"""What the referee reaches of what a process says that its calls returned."""

import ctypes
import os
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    from kernelmill_torch import reach as reach_module
    from kernelmill_torch.buffers import Layout, TensorSpec
    from kernelmill_torch.reach import Allocation, Reach, where


class Driver:
    """Opens what it is asked for, until it has opened enough."""

    def __init__(self, size=64):
        self.size, self.opened, self.closed = size, 0, []

    def km_gpu_open(self, name, size):
        self.opened += 1
        ctypes.cast(size, ctypes.POINTER(ctypes.c_size_t))[0] = self.size
        return int.from_bytes(name[:8], "little")

    def km_gpu_close(self, place):
        self.closed.append(place)


def name_of(base, place):
    return f"{base}:{(place.to_bytes(8, 'little') + bytes(56)).hex()}"


@unittest.skipIf(torch is None, "there is no torch here")
class OnCpu(unittest.TestCase):
    """The process is this one."""

    def setUp(self):
        self.spec = TensorSpec((2, 3), (3, 1), torch.float32)
        self.reach = Reach(None, "cpu", Layout([], [self.spec], sets=2))

    def tearDown(self):
        self.reach.close()

    def tell(self, *tensors):
        numbers = [n for x in tensors for n in where(x)]
        for i, n in enumerate(numbers):
            self.reach.told[i] = n

    def take(self, count=1):
        return self.reach.take(os.getpid(), count)

    def test_takes_copies_of_what_lies_there(self):
        x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)
        self.tell(x, y)
        first, second = self.take(2)
        self.assertTrue(torch.equal(first.outputs[0], x))
        self.assertTrue(torch.equal(second.outputs[0], y))
        x.fill_(9.0)
        self.assertEqual(float(first.outputs[0][0, 1]), 1.0)

    def test_minds_strides(self):
        x = torch.arange(6.0).reshape(3, 2).t()
        self.tell(x)
        self.assertTrue(torch.equal(self.take()[0].outputs[0], x))
        x = torch.arange(3.0).expand(2, 3)
        self.tell(x)
        self.assertTrue(torch.equal(self.take()[0].outputs[0], x))

    def test_elements_that_are_not_those_in_memory_are_out_of_reach(self):
        x = torch.imag(torch.ones(2, 3, dtype=torch.complex64).conj())
        self.assertTrue(x.is_neg())
        self.tell(x)
        self.assertIsNone(self.take())

    def test_lies_are_out_of_reach(self):
        x = torch.ones(2, 3)
        for address, stride in (
            (8, (3, 1)),
            (-4, (3, 1)),
            (2**63 - 4, (3, 1)),
            (x.data_ptr() + 1, (3, 1)),
            (x.data_ptr(), (-3, 1)),
            (x.data_ptr(), (2**40, 1)),
            (0, (3, 1)),
        ):
            for i, n in enumerate((address, *stride)):
                self.reach.told[i] = n
            self.assertIsNone(self.take(), (address, stride))
            self.assertFalse(self.reach.may_learn())

    def test_what_lies_in_the_shared_buffers_is_not_asked_of_the_process(self):
        memory = torch.arange(24, dtype=torch.uint8)
        self.reach.shared = Allocation(4096, memory)  # as the process sees it
        for i, n in enumerate((4096, 3, 1)):
            self.reach.told[i] = n
        found = self.take()[0].outputs[0]
        self.assertEqual(found.data_ptr(), memory.data_ptr())

    def test_a_call_may_return_nothing_at_all(self):
        empty = Reach(None, "cpu", Layout([], [TensorSpec((0, 3), (3, 1), torch.float32)], sets=1))
        self.assertEqual(tuple(empty.take(os.getpid(), 1)[0].outputs[0].shape), (0, 3))
        empty.close()


@unittest.skipIf(torch is None, "there is no torch here")
class OnGpu(unittest.TestCase):
    def setUp(self):
        self.driver, self.memory = Driver(), torch.arange(64, dtype=torch.uint8)
        self.as_tensor = reach_module.torch.as_tensor
        reach_module.torch.as_tensor = lambda _bytes, device: self.memory
        self.synchronize, torch.cuda.synchronize = torch.cuda.synchronize, lambda: None
        self.reach = Reach(self.driver, "cuda", Layout([], [TensorSpec((4,), (1,), torch.uint8)], sets=2))

    def tearDown(self):
        self.reach.close()
        reach_module.torch.as_tensor, torch.cuda.synchronize = self.as_tensor, self.synchronize

    def take(self, *addresses):
        for i, address in enumerate(addresses):
            self.reach.told[2 * i], self.reach.told[2 * i + 1] = address, 1
        found = self.reach.take(1, len(addresses))
        return found and [one.outputs[0].tolist() for one in found]

    def test_an_allocation_is_opened_once(self):
        self.assertIsNone(self.take(0x1008, 0x1010))
        self.assertTrue(self.reach.may_learn())
        self.reach.learn([name_of(0x1000, 77)] * 2)
        self.assertEqual(self.take(0x1008, 0x1010), [[8, 9, 10, 11], [16, 17, 18, 19]])
        self.assertEqual(self.take(0x1009, 0x1011), [[9, 10, 11, 12], [17, 18, 19, 20]])
        self.assertEqual(self.driver.opened, 1)
        self.assertIsNone(self.take(0x1008, 0x103D))  # beyond its end
        self.reach.close()
        self.assertEqual(self.driver.closed, [77])

    def test_what_cannot_be_opened_is_asked_for_once(self):
        for names in ([None], [], "nothing", [7], ["1:zz"], ["4096:00"]):
            self.assertIsNone(self.take(0x1008))
            self.assertTrue(self.reach.may_learn())
            self.reach.learn(names)
            self.assertIsNone(self.take(0x1008))
            self.assertFalse(self.reach.may_learn())
            self.reach.forget()
        self.assertEqual(self.driver.opened, 0)

    def test_a_process_cannot_have_the_referee_open_allocations_without_end(self):
        for i in range(2 * reach_module.MOST_ALLOCATIONS):
            self.take(0x1000 * (i + 1))
            self.reach.learn([name_of(0x1000 * (i + 1), i + 1)])
        self.assertEqual(self.driver.opened, reach_module.MOST_ALLOCATIONS)

    def learned(self):
        self.take(0x1000)
        self.reach.learn([name_of(0x1000, 77)])

    def test_what_is_wrong_where_it_once_lay_is_mapped_anew_and_then_in_each_row(self):
        self.assertFalse(self.reach.moved())  # nothing was mapped
        for fleeting in False, True:
            self.learned()
            self.assertTrue(self.reach.moved())
            self.assertEqual(self.reach.is_fleeting, fleeting)
            self.assertIsNone(self.take(0x1000))
        self.learned()
        self.assertFalse(self.reach.moved())
        self.assertEqual(self.driver.closed, [77, 77])

    def test_a_base_that_is_not_true_harms_the_candidate_that_told_it(self):
        self.reach.close()
        self.reach = Reach(self.driver, "cuda", Layout([], [TensorSpec((4,), (1,), torch.float32)], sets=1))
        self.assertIsNone(self.take(0x1004))
        self.reach.learn([name_of(0x1003, 77)])
        self.assertIsNone(self.take(0x1004))


if __name__ == "__main__":
    unittest.main()
