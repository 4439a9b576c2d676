"""The names of torch by which a module's CUDA sources are recorded. It computes nothing.

For tests of `inspect MODULE` on machines without torch: nvcc is the real one.
"""

__version__ = "2.0.0"


class version:
    cuda = "13.0"


class _C:
    _GLIBCXX_USE_CXX11_ABI = True


class cuda:
    @staticmethod
    def _lazy_init():
        raise RuntimeError("there is no GPU")

    @staticmethod
    def is_available():
        return False


class nn:
    class Module:
        pass


def set_num_threads(_count):
    pass
