"""What the trainers of the campaigns register: how many batches they have drawn."""


class Batches:
    """The number of batches, which goes into the checkpoints."""

    def __init__(self) -> None:
        self.number = 0

    def state_dict(self) -> dict:
        return {"number": self.number}

    def load_state_dict(self, state: dict) -> None:
        self.number = state["number"]
