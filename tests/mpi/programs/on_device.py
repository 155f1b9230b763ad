"""Arrays in device memory that the host cannot access, through the stand-in for the driver (tests/devices)."""

import ctypes

import numpy as np

from mpidata.dtypes import BITS_OF_BFLOAT16

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_POINTER, _INT, _SIZE, _CHAR = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]


class _Functions(ctypes.Structure):
    """The members of `standin_functions` in tests/devices/standin.h that are used."""

    _fields_ = [
        ("allocate", ctypes.CFUNCTYPE(_POINTER, _SIZE, _CHAR, _INT)),
        ("write", ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _SIZE)),
        ("launch_write", ctypes.CFUNCTYPE(None, _POINTER, _POINTER, _POINTER, _SIZE)),
        ("stream", ctypes.CFUNCTYPE(_POINTER, _INT, _INT)),
        ("fail", ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INT)),
        ("open_objects", ctypes.CFUNCTYPE(_INT)),
        ("current", ctypes.CFUNCTYPE(_INT)),
        ("set_current", ctypes.CFUNCTYPE(None, _INT)),
        ("last_error", ctypes.CFUNCTYPE(_INT)),
        ("copies", ctypes.CFUNCTYPE(ctypes.c_long)),
        ("locked", ctypes.CFUNCTYPE(_SIZE, _POINTER)),
        ("forget", ctypes.CFUNCTYPE(None)),
    ]


class Device:
    """The driver, loaded when the first array is made."""

    def __init__(self, library):
        self.functions = _Functions.in_dll(ctypes.CDLL(library), "standin")
        self.stream = self.functions.stream(0, 1)

    def array(self, values, chance, may_be_strided):
        """Return an array whose values a kernel writes later; strided or not, by one of the two protocols."""
        values = np.asarray(values)
        room = values
        strided = may_be_strided and values.ndim and values.size and chance.random() < 0.3
        if strided:  # every other element, from the last one backwards
            room = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
            room[..., ::-2] = values
        memory = self.functions.allocate(max(1, room.nbytes), chance.choice([b"d", b"p", b"m"]), 0)
        first, strides = memory, room.strides
        if strided:
            first = memory + room.nbytes // max(1, room.size) * (room.shape[-1] - 1)
            strides = (*room.strides[:-1], -2 * room.itemsize)
        by_interface = values.dtype != BITS_OF_BFLOAT16 and chance.random() < 0.5
        kind = ByInterface if by_interface else ByDlpack
        return kind(self, memory, np.ascontiguousarray(room), first, values, strides)


class _OnDevice:
    def __init__(self, device, memory, room, first, values, strides):
        self.device, self.memory, self.room, self.first = device, memory, room, first
        self.dtype, self.shape, self.strides = values.dtype, values.shape, strides

    def launch(self, stream):
        if self.room.nbytes:
            self.device.functions.launch_write(stream, self.memory, self.room.ctypes.data, self.room.nbytes)

    def spoil(self):
        """Overwrite the array, as a program may once the put call has returned."""
        if self.room.nbytes:
            self.device.functions.write(self.memory, (b"\xee" * self.room.nbytes), self.room.nbytes)


class ByInterface(_OnDevice):
    """Like arrays of Numba and CuPy: names the stream to wait for."""

    @property
    def __cuda_array_interface__(self):
        self.launch(self.device.stream)
        about = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.first, False)}
        return about | {"strides": self.strides, "version": 3, "stream": self.device.stream}


class _Tensor(ctypes.Structure):
    _fields_ = [("data", _POINTER), ("device", _INT), ("number", _INT), ("ndim", _INT), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", _POINTER), ("strides", _POINTER),
                ("offset", ctypes.c_uint64)]  # fmt: skip


class ByDlpack(_OnDevice):
    """Like arrays of torch and JAX: ready for the stream that the caller names."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None):
        assert stream == 1
        self.launch(None)
        bits, code = 8 * self.dtype.itemsize, 4 if self.dtype == BITS_OF_BFLOAT16 else _CODES[self.dtype.kind]
        strides = [stride // self.dtype.itemsize for stride in self.strides]
        numbers = ctypes.c_int64 * max(1, len(self.shape))
        self.kept = numbers(*self.shape), numbers(*strides)
        self.kept += (_Tensor(self.first - 16, 2, 0, len(self.shape), code, bits, 1,
                              *map(ctypes.addressof, self.kept), 16),)  # fmt: skip
        return _new(ctypes.addressof(self.kept[2]), b"dltensor", None)
