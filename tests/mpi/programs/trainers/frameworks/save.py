"""The result files of trainers with frameworks: the samples used and sums of the final parameters."""

import json
import os


def save(used, model, **values):
    sums = [float(parameter.detach().sum()) for parameter in model.parameters()]
    values |= {"used": [[int(i), int(s)] for i, s in used], "sums": sums}
    with open(f"used-{os.environ['RANK']}.json", "w") as file:
        json.dump(values, file)
