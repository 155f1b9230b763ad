"""Run the job once as it is and once with the death of a trainer; draw the errors of both into curves.png."""

import os
import subprocess

import matplotlib.pyplot as plt
import numpy as np

RUNS = {"three trainers": {}, "one of them is killed in step 150": {"DIES_AT": "150"}}


def main() -> None:
    for name, variables in RUNS.items():
        subprocess.run(["mpidata", "run", "elastic.yaml"], env={**os.environ, **variables}, check=True)
        latest = max(
            (path for path in os.scandir("runs/elastic") if path.name.isdigit()), key=lambda path: int(path.name)
        )
        samples, error = np.loadtxt(f"{latest.path}/curve.csv", delimiter=",").T
        plt.semilogy(samples, error, label=name)
    plt.xlabel("samples learned from")
    plt.ylabel("mean squared error of 16 held-out simulations")
    plt.legend()
    plt.savefig("curves.png", dpi=120)


if __name__ == "__main__":
    main()
