"""Values that solvers put into `<declared>` or `<declared>_of_<put>`, six elements per step, and what arrives."""

import numpy as np

STEPS = 3
NATIVE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")  # fmt: skip
CONVERTED = ("float32_of_float64", "float16_of_float64", "bfloat16_of_float64", "float16_of_float32",
             "bfloat16_of_float32", "complex64_of_complex128")  # fmt: skip
FIELDS = {name: {"dtype": name.split("_")[0], "shape": [6]} for name in (*NATIVE, *CONVERTED)}


def put(name: str, step: int) -> np.ndarray:
    """Return the array that is put; for bfloat16, its bits."""
    dtype = name.split("_")[-1]
    n = 8 * step + np.arange(6)
    if dtype == "bool":
        return n % 3 == 0
    if dtype in ("float16", "bfloat16"):
        return (0x3C00 + n).astype(np.uint16).view(np.float16 if dtype == "float16" else np.uint16)
    if dtype.startswith("complex"):
        values = (n + 1) / 3 + 1j * n
        values[5] = complex(1e300 if dtype == "complex128" else 3e38, 1)
        return values.astype(dtype)
    if dtype.startswith("float"):
        values = (n + 1) / 3
        values[4:] = np.nan, 1e300 if dtype == "float64" else 3e38
        return values.astype(dtype)
    values = (n if dtype[0] == "u" else -n).astype(dtype)
    values[5] = np.iinfo(dtype).max
    return values


def arrives(name: str, step: int) -> np.ndarray:
    """Return what arrives, converted if necessary; bfloat16 as float32 of the same value."""
    declared, values = name.split("_")[0], put(name, step)
    with np.errstate(over="ignore", invalid="ignore"):
        if declared != "bfloat16":
            return values.astype(declared)
        if name == declared:
            return (values.astype(np.uint32) << 16).view(np.float32)
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)  # none of these is near a tie
        rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
        return np.where(np.isnan(values), np.float32(np.nan), rounded)
