"""Reader: raises."""


def fields(path, simulation):
    raise ValueError("as asked")
