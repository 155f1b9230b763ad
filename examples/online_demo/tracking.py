"""Passes the training script's reports to Weights & Biases or MLflow: `log: ["tracking:WandB"]` in the job file.

All calls come from one thread of the scheduler; an exception is reported once and does not disturb the job.
"""

from pathlib import Path
from typing import Any


class WandB:
    def open(self, run: Path, job: dict[str, Any]) -> None:
        import wandb

        self._run = wandb.init(project=job["name"], name=run.name, dir=run, config=job)

    def write(self, time: float, batch: int, values: dict[str, float]) -> None:
        self._run.log({**values, "batch": batch})

    def close(self, status: str) -> None:
        self._run.finish(exit_code=int(status == "failed"))


class MLflow:
    def open(self, run: Path, job: dict[str, Any]) -> None:
        import mlflow

        mlflow.set_experiment(job["name"])
        self._mlflow = mlflow
        mlflow.start_run(run_name=run.name)

    def write(self, time: float, batch: int, values: dict[str, float]) -> None:
        self._mlflow.log_metrics(values, step=batch)

    def close(self, status: str) -> None:
        self._mlflow.end_run("FAILED" if status == "failed" else "FINISHED")
