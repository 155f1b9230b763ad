"""The state that the campaigns' trainers register: the number of batches drawn."""


class Batches:
    """The number of batches, saved in checkpoints."""

    def __init__(self) -> None:
        self.number = 0

    def state_dict(self) -> dict:
        return {"number": self.number}

    def load_state_dict(self, state: dict) -> None:
        self.number = state["number"]
