"""Scripts: how Markdown becomes scenes, and which faults are reported."""

from __future__ import annotations

import pytest
from apps.factory.scenes import Scene
from apps.factory.scripts import CODE_LINES, MAX_SCENES, Script, ScriptInvalid, parse

FINE = "# A title\n\n## A scene\n\nWords.\n"


def test_a_script_becomes_scenes() -> None:
    script = parse(
        "# Work *that* holds\n\nIt `begins`\nhere.\n\n---\n\n## One\n\nFirst.\n\nSecond, with [a link](http://x).\n\n"
        "- a point\n- **another**\n\n![a tower](tower)\n\n## Two\n\nThird.\n\n```python\nx = 1\n\ty = 2\n```\n",
        pictures=["tower"],
    )
    assert script == Script(
        title="Work that holds",
        scenes=(
            Scene(title="Work that holds", narration="It begins here.", opening=True),
            Scene(title="One", narration="First. Second, with a link.", points=("a point", "another"), picture="tower"),
            Scene(title="Two", narration="Third.", code="x = 1\n    y = 2"),
        ),
    )
    assert [Scene.from_json(scene.as_json()) for scene in script.scenes] == list(script.scenes)


def test_european_letters_are_accepted() -> None:
    script = parse("# Ærøskøbing – „Größe“ → 3 €\n\n## Żółć Ελλάδα Київ\n\nİstanbul, Čeština.\n\n```\n│ ä ─\n```\n")
    assert (script.title, script.scenes[1].narration) == ("Ærøskøbing – „Größe“ → 3 €", "İstanbul, Čeština.")


def test_a_title_without_narration_becomes_the_narration() -> None:
    assert parse(FINE).scenes[0].narration == "A title"
    assert parse(f"\ufeff{FINE}") == parse(FINE), "a byte order mark is ignored"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", [("title_missing", 1)]),
        ("Words.\n\n# Title\n\n## Scene\n\nWords.", [("title_missing", 1), ("title_twice", 3)]),
        ("# Title", [("scene_missing", 1)]),
        ("## Scene\n\nWords.", [("title_missing", 1), ("title_missing", 3), ("scene_missing", 3)]),
        ("# Title\n\n# Another\n\n## Scene\n\nWords.", [("title_twice", 3)]),
        ("# Title\n\n## Scene\n", [("narration_missing", 3)]),
        ("# Title\n\n- a point\n\n## Scene\n\nWords.", [("title_card_full", 3)]),
        (FINE + "\n### Smaller\n", [("heading_unknown", 7)]),
        (FINE + "\n##\n", [("title_empty", 7)]),
        (FINE + f"\n## {'x' * 121}\n\nWords.", [("title_too_long", 7)]),
        (FINE + "\n> said\n", [("part_unknown", 7)]),
        (FINE + "\n1. first\n", [("part_unknown", 7)]),
        (FINE + "\n<script>alert(1)</script>\n", [("part_unknown", 7)]),
        (FINE + "\n![x](tower) and words\n", [("picture_in_text", 7)]),
        (FINE + "\n![x](nothing)\n", [("picture_unknown", 7)]),
        (FINE + "\n![x](../../etc/passwd)\n", [("picture_unknown", 7)]),
        (FINE + "\n![x](tower)\n\n![y](tower)\n", [("picture_twice", 9)]),
        (FINE + "\n- a\n  - b\n", [("points_nested", 7)]),
        (FINE + "\n" + "- a\n" * 7, [("too_many_points", 3)]),
        (FINE + f"\n- a\n- {'b' * 121}\n", [("point_too_long", 8)]),
        (FINE + "\n```\n" + "x\n" * (CODE_LINES + 1) + "```\n", [("code_too_long", 7)]),
        (FINE + "\n```\na\n```\n\n```\nb\n```\n", [("code_twice", 11)]),
        (FINE + "\n![x](tower)\n\n```\nb\n```\n", [("scene_full", 3)]),
        (f"# Title\n\n## Scene\n\n{'word ' * 151}", [("scene_too_long", 3)]),
        ("# Title\n" + "\n## Scene\n\nWords.\n" * (MAX_SCENES + 1), [("too_many_scenes", 3 + 4 * (MAX_SCENES - 1))]),
        ("x" * 100_001, [("script_too_long", 1)]),
        (f"# Title\n\n## Scene\n\n{'a' * 1_501}", [("scene_too_long", 3)]),
        ("# Title\n\n## Scene\n\n… - !\n", [("narration_missing", 3)]),
        ("# …\n\n## Scene\n\nWords.", [("narration_missing", 1)]),
        (FINE + "\n- a\n  ```\n  lost\n  ```\n", [("part_unknown", 8)]),
        (FINE + "\n- a\n\n  > lost\n", [("part_unknown", 9)]),
        (FINE + "\n- a ![x](tower)\n", [("picture_in_text", 7)]),
        (FINE + "\n## Two ![x](tower)\n\nWords.", [("picture_in_text", 7)]),
        (FINE + "\n你好 🎉\n", [("letter_unknown", 7)]),
        (FINE + "\n- 你好\n", [("letter_unknown", 7)]),
        (FINE + "\n```\nx = '你'\n```\n", [("letter_unknown", 7)]),
        (FINE + "\n[x](a\0b)\n", [("letter_unknown", 7)]),
        (FINE + f"\n{'[' * 9_000}\n", [("scene_too_long", 3)]),
        (FINE + f"\n{'>' * 90_000}\n", [("part_unknown", 7)]),
    ],
)
def test_each_fault_has_its_line_and_a_stable_code(text: str, faults: list[tuple[str, int]]) -> None:
    with pytest.raises(ScriptInvalid) as caught:
        parse(text, pictures=["tower"])
    assert [(fault.code, fault.line) for fault in caught.value.faults] == faults
    assert all(f"line {fault.line}: " in str(caught.value) for fault in caught.value.faults)
