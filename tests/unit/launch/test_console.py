"""Texts of programs on a terminal."""

import io

from rich.text import Text

from mpidata.launch.page.console import SafeConsole


def printed(text: Text, **options: object) -> str:
    output = io.StringIO()
    SafeConsole(file=output, width=20, **options).print(text, soft_wrap=True)  # type: ignore[arg-type]
    return output.getvalue()


def test_characters_that_control_a_terminal_are_escaped() -> None:
    reason = "mesh\x1b[2J\x1bc \u202etxt\u2066 \x9b1m\x7f\u2028"
    assert printed(Text(reason)) == "mesh\\x1b[2J\\x1bc \\u202etxt\\u2066 \\x9b1m\\x7f\\u2028\n"


def test_other_characters_are_kept() -> None:
    text = "é\u00a0\u4f60 \U0001f469\u200d\U0001f4bb line that is longer than the width\nnext"
    assert printed(Text(text)) == f"{text}\n"


def test_colours_of_a_program_are_kept() -> None:
    shown = printed(Text.from_ansi("\x1b[31mred\x1bc\u202e\x1b[0m plain"), force_terminal=True, legacy_windows=False)
    assert shown.startswith("\x1b[31mred\x1b[0m") and shown.endswith("\x1b[0mu202e plain\n")
    assert "\x1bc" not in shown and "\u202e" not in shown
