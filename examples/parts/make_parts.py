"""Make 16 Parquet files of 60,000 to 75,000 rows: 20 features of a collision, and whether it was a signal."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

FEATURES = [f"feature_{i}" for i in range(20)]

if __name__ == "__main__":
    folder = Path("parts")
    folder.mkdir(exist_ok=True)
    for number in range(16):
        random = np.random.default_rng(number)
        x = random.normal(size=(60_000 + 1_000 * number, 20)).astype(np.float32)
        score = x[:, 0] * x[:, 1] - np.abs(x[:, 2]) + np.sin(2 * x[:, 3]) + 0.3 * random.normal(size=len(x))
        columns = {name: x[:, i] for i, name in enumerate(FEATURES)} | {"signal": (score > -0.5).astype(np.float32)}
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / f"part-{number:02d}.parquet")
    print(f"{folder.resolve()}: 16 parts, 1,080,000 rows")
