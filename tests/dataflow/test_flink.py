"""PyFlink in its own environment: a job killed, and restored from a checkpoint."""

import os
import random
from collections import Counter
from pathlib import Path

import cloudpickle
import psutil
import pytest

from distlab import EngineFailed, EngineMissing, InvalidArgument
from distlab.commands.install import install
from distlab.engines import flink

COUNT = 300


def true_counts():
    return Counter(word_of(number) for number in range(COUNT))


def word_of(number):
    return "abcdef"[random.Random(number).randrange(6)]


def job_into(folder):
    """Return a job that counts words into files of Flink's, and into one of its own."""
    of, count = word_of, COUNT

    def build(env):
        import time

        from pyflink.common import Encoder, Types, WatermarkStrategy
        from pyflink.datastream import KeyedProcessFunction
        from pyflink.datastream.connectors.file_system import FileSink
        from pyflink.datastream.connectors.number_seq import NumberSequenceSource
        from pyflink.datastream.state import ValueStateDescriptor

        class Count(KeyedProcessFunction):
            def open(self, context):
                described = ValueStateDescriptor("count", Types.LONG())
                self.count = context.get_state(described)

            def process_element(self, word, context):
                count = (self.count.value() or 0) + 1
                self.count.update(count)
                with open(f"{folder}/external", "a") as file:
                    file.write(f"{word}\n")
                yield f"{word} {count}"

        def word(number):
            time.sleep(0.01)
            return of(number)

        numbers = env.from_source(
            NumberSequenceSource(0, count - 1),
            WatermarkStrategy.no_watermarks(),
            "numbers",
            Types.LONG(),
        )
        words = numbers.map(word, Types.STRING()).key_by(lambda w: w, Types.STRING())
        encoder = Encoder.simple_string_encoder()
        sink = FileSink.for_row_format(f"{folder}/out", encoder).build()
        words.process(Count(), Types.STRING()).sink_to(sink)

    return build


@pytest.mark.nightly
@pytest.mark.skipif(not flink.is_installed(), reason="Flink has no environment here")
def test_a_restored_job_counts_each_word_once_and_an_external_file_some_twice(tmp_path):
    cloudpickle.register_pickle_by_value(__import__(__name__))
    external = tmp_path / "external"
    with flink.start(job_into(tmp_path), tmp_path) as job:
        job.wait_for_checkpoint(2)
        seen = external.stat().st_size
        while external.stat().st_size < seen + 60 and len(job.checkpoints()) < 4:
            job.wait_for_checkpoint()
    with pytest.raises(InvalidArgument, match="_metadata"):
        flink.start(job_into(tmp_path), tmp_path, restored_from=str(tmp_path))
    last = job.checkpoints()[-1]
    with flink.start(job_into(tmp_path), tmp_path, restored_from=last) as job:
        job.wait()
    files = (tmp_path / "out").glob("*/[!.]*")
    rows = [line.split() for file in files for line in file.read_text().splitlines()]
    assert Counter(word for word, _ in rows) == true_counts()
    assert {(w, n) for w, n in true_counts().items()} <= {(w, int(n)) for w, n in rows}
    assert len(external.read_text().split()) >= COUNT
    here = str(tmp_path)
    alive = (each.cmdline() for each in psutil.Process().children(recursive=True))
    assert not [words for words in alive if here in " ".join(words)]


@pytest.mark.nightly
@pytest.mark.skipif(not flink.is_installed(), reason="Flink has no environment here")
def test_a_job_that_fails_says_why(tmp_path):
    def fails(env):
        raise ValueError("no such topic")

    with (
        flink.start(fails, tmp_path) as job,
        pytest.raises(EngineFailed, match="no such topic"),
    ):
        job.wait()


def test_without_its_environment_the_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not flink.is_installed()
    for call in (flink.version, lambda: flink.start(print, tmp_path)):
        with pytest.raises(EngineMissing, match="distlab install flink"):
            call()


@pytest.mark.nightly
def test_an_environment_that_cannot_be_made_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(flink, "PACKAGES", (str(Path(tmp_path, "none.whl")),))
    with pytest.raises(EngineFailed, match=r"none\.whl"):
        flink.install()
    assert os.listdir(tmp_path / "distlab") == []


def test_other_systems_need_no_environment():
    with pytest.raises(InvalidArgument, match="distlab doctor"):
        install("redis")
