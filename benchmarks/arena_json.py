"""Reading a large file of arena votes whose conversations are not needed: JSON lines and one array.

python benchmarks/arena_json.py [--battles 25000] [--folder FOLDER]

Writes battles with two conversations each (about 300 MB by default) to a temporary folder and reads each file in a
process of its own: seconds and processor time of `formats.read`, and the largest resident memory of the whole process,
the interpreter included. A plain loop of `json.loads` over the lines that keeps two ids and the winner is timed for
comparison.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORDS = (
    "model",
    "answer",
    "because",
    "of",
    "the",
    "query",
    "ranking",
    "\n",
    "naïve",
    '"quoted"',
    "\\",
    "多",
    "🙂",
)
PODIUM = """
from podium import formats
begin, used = time.perf_counter(), time.process_time()
votes = len(formats.read(path).preferences.comparisons)
seconds, processor = time.perf_counter() - begin, time.process_time() - used
"""
PLAIN = """
begin, used, votes = time.perf_counter(), time.process_time(), 0
for line in open(path, "rb"):
    battle = json.loads(line)
    votes += battle["model_a"] != battle["model_b"] and battle["winner"] is not None
seconds, processor = time.perf_counter() - begin, time.process_time() - used
"""
FRAME = """
import json, sys, time
path = sys.argv[1]
{body}
# not getrusage: its peak is inherited from the process that started this one
peak = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps(dict(seconds=seconds, processor=processor, megabytes=peak, votes=votes)))
"""


def iterate_battles(count: int, seed: int = 7) -> Any:
    """Battles with the fields of published arena data."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, weights=[20] * 8 + [1] * 5, k=500)) for _ in range(200)]
    for k in range(count):
        first, second = draw.sample(range(40), 2)
        question = draw.choice(texts)[:300]
        conversations = [
            [{"role": "user", "content": question}, {"role": "assistant", "content": draw.choice(texts) * 2}]
            for _ in range(2)
        ]
        yield {
            "question_id": f"{k:032x}",
            "model_a": f"model-{first}",
            "model_b": f"model-{second}",
            "winner": draw.choice(["model_a", "model_b", "tie", "tie (bothbad)"]),
            "judge": f"arena_user_{k % 9973}",
            "conversation_a": conversations[0],
            "conversation_b": conversations[1],
            "turn": 1,
            "anony": True,
            "language": draw.choice(["English", "German", "Chinese"]),
            "tstamp": 1_680_000_000 + k * 1.5,
            "openai_moderation": {"categories": {"hate": False}, "flagged": False},
        }


def write_files(folder: Path, battles: int) -> list[Path]:
    """The same battles as lines and as one array."""
    lines, array = folder / "arena.jsonl", folder / "arena.json"
    if not (lines.exists() and array.exists()):
        with lines.open("w") as one, array.open("w") as other:
            other.write("[")
            for number, battle in enumerate(iterate_battles(battles)):
                text = json.dumps(battle, ensure_ascii=False)
                one.write(text + "\n")
                other.write(", " * (number > 0) + text)
            other.write("]")
    return [lines, array]


def measure(body: str, path: Path) -> dict[str, float]:
    """Seconds, peak memory and number of votes, in a process of its own."""
    words = [sys.executable, "-c", FRAME.format(body=body), str(path)]
    result: dict[str, float] = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return result


def main() -> None:
    """Print one line per file and reader."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--battles", type=int, default=25_000)
    parser.add_argument("--folder", type=Path, help="keep the generated files here")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        lines, array = write_files(given.folder or Path(temporary), given.battles)
        print(f"{given.battles:,} battles, {lines.stat().st_size / 1e6:.0f} MB")
        for name, body, path in (
            ("podium, lines", PODIUM, lines),
            ("podium, array", PODIUM, array),
            ("json.loads, lines", PLAIN, lines),
        ):
            turns = [measure(body, path) for _ in range(given.repeat)]
            wall, processor = (min(t[key] for t in turns) for key in ("seconds", "processor"))
            peak = max(t["megabytes"] for t in turns)
            print(
                f"{name:18}  {wall:6.2f} s, processor {processor:6.2f} s  {peak:7.1f} MB  {turns[0]['votes']:,} votes"
            )


if __name__ == "__main__":
    main()
