"""Reader: each word of a file is a step."""


def fields(path, simulation):
    for word in path.read_text().split():
        yield float(word), {"u": simulation.id + float(word)}
