"""The preset `folder`: pairs, divisions and refusals."""

import shutil

import mido
import numpy as np
import pytest
from scipy.io import wavfile
from trainer import train_runs

modules = pytest.mark.usefixtures("reference_modules")
RATE = 16000


def write_wav(path, seconds=4.0, rate=RATE, dtype=np.int16, channels=1):
    time = np.arange(int(seconds * rate)) / rate
    wave = 0.5 * np.sin(2 * np.pi * 440.0 * time)
    scale = {np.int16: 32767, np.int32: 2147483647, np.float32: 1.0}[dtype]
    data = (wave * scale).astype(dtype)
    wavfile.write(path, rate, np.stack([data] * channels, axis=1) if channels > 1 else data)


def write_csv(path, count=6, seconds=4.0):
    step = seconds / count
    path.write_text("".join(f"{i * step:.3f},440.0,{0.6 * step:.3f}\n" for i in range(count)))


@modules
@pytest.mark.parametrize(
    ("rate", "dtype", "channels"), [(44100, np.int16, 2), (8000, np.float32, 1), (16000, np.int32, 1)]
)
def test_any_wav_becomes_mono_at_the_rate_asked_for(tmp_path, rate, dtype, channels):
    from folder import read_wav

    write_wav(tmp_path / "a.wav", 1.0, rate, dtype, channels)
    audio = read_wav(tmp_path / "a.wav", RATE)
    assert audio.shape == (RATE,)
    assert np.abs(np.fft.rfft(audio)).argmax() == 440
    assert np.sqrt(np.mean(audio**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.02)


@modules
def test_midi_gives_seconds_and_leaves_drums_out(tmp_path):
    from folder import read_midi

    track = mido.MidiTrack([mido.MetaMessage("set_tempo", tempo=500000)])  # 480 ticks are half a second
    track.append(mido.Message("note_on", note=60, velocity=90, time=480))
    track.append(mido.Message("note_on", note=38, velocity=90, channel=9, time=0))
    track.append(mido.Message("note_on", note=60, velocity=0, time=960))
    mido.MidiFile(tracks=[track], ticks_per_beat=480).save(tmp_path / "a.mid")
    assert read_midi(tmp_path / "a.mid") == [(0.5, 1.5, 60.0)]


@modules
def test_one_recording_is_divided_in_time_without_a_leak(tmp_path):
    from folder import divide, read_folder

    write_wav(tmp_path / "solo.wav")
    write_csv(tmp_path / "solo.csv", count=8)
    (whole,) = read_folder(tmp_path, RATE)
    (train,), (held_out,) = divide([whole], RATE, 0.25)
    assert np.array_equal(np.concatenate([train.audio, held_out.audio]), whole.audio)
    assert len(train.audio) / RATE == pytest.approx(3.0 - 0.1)
    cut = len(train.audio) / RATE
    assert len(train.notes) + len(held_out.notes) == len(whole.notes) == 8
    assert train.notes[:, 1].max() <= cut
    assert held_out.notes[:, 0] + cut == pytest.approx(whole.notes[6:, 0])
    assert held_out.notes[:, 2] == pytest.approx([69.0, 69.0])


@modules
def test_several_recordings_are_divided_by_file(tmp_path, capsys):
    from folder import divide, read_folder

    for name in ("d", "b", "a", "c"):
        write_wav(tmp_path / f"{name}.wav")
        write_csv(tmp_path / f"{name}_notesB.csv")
        write_csv(tmp_path / f"{name}_notesA.csv")
    write_wav(tmp_path / "lonely.wav")
    train, held_out = divide(read_folder(tmp_path, RATE), RATE, 0.25)
    assert [r.name for r in train] == ["a", "b", "c"]
    assert [r.name for r in held_out] == ["d"]
    said = capsys.readouterr()
    assert "a.wav with a_notesA.csv, 6 notes, 4.0 s" in said.out
    assert "lonely.wav has no .csv or .mid" in said.err


@modules
def test_a_name_that_begins_another_keeps_its_own_notes(tmp_path):
    from folder import read_folder

    for name, count in (("song_1", 5), ("song_10", 7)):
        write_wav(tmp_path / f"{name}.wav")
        write_csv(tmp_path / f"{name}_notes.csv", count)
    assert {r.name: len(r.notes) for r in read_folder(tmp_path, RATE)} == {"song_1": 5, "song_10": 7}


@modules
def test_a_transposed_clip_keeps_notes_on_their_sound():
    from data import cut_clip
    from folder import Recording

    time = np.arange(8 * RATE) / RATE
    audio = np.where((time >= 3.0) & (time < 5.0), np.sin(2 * np.pi * 440.0 * time), 0.0).astype(np.float32)
    recording = Recording("r", audio, np.array([[3.0, 5.0, 69.0]]))
    for seed in range(8):
        clip, notes = cut_clip(np.random.default_rng(seed), [recording], 6 * RATE, RATE, 3.0)
        (onset, offset, pitch), sounding = notes[0], np.flatnonzero(np.abs(clip) > 1e-3) / RATE
        assert sounding[0] == pytest.approx(max(onset, 0.0), abs=0.005)
        assert sounding[-1] == pytest.approx(min(offset, 6.0), abs=0.005)
        inside = clip[int((sounding[0] + 0.1) * RATE) :][: RATE // 2]
        measured = np.abs(np.fft.rfft(inside * np.hanning(len(inside)), 16 * RATE)).argmax() / 16
        assert 69 + 12 * np.log2(measured / 440.0) == pytest.approx(pitch, abs=0.05)


def test_bad_input_ends_in_one_line(tmp_path):
    def home(name):
        (tmp_path / name).mkdir()
        write_wav(tmp_path / name / "a.wav")
        return tmp_path / name

    (home("words") / "a.csv").write_text("0.1,440,0.5\nonset,pitch\n")
    (home("negative") / "a.csv").write_text("0.1,440,-0.5\n")
    (home("late") / "a.csv").write_text("9.0,440,0.5\n")
    (home("none") / "b.csv").write_text("0.1,440,0.5\n")
    (home("midi") / "a.mid").write_text("not midi")
    write_csv(home("noise") / "a.csv")
    (tmp_path / "noise" / "a.wav").write_text("not a wav")
    write_csv(home("short") / "a.csv", count=1)
    names = ["words", "negative", "late", "none", "midi", "noise", "short", "missing"]
    said = [".csv file that can be used (line 2: 'onset,pitch' is not", "duration > 0", "end of a.wav at 4.00 s"]
    said += ["no NAME.wav with", "not a .mid file", "not a .wav file", "too short", "no NAME.wav with"]
    common = ["-d", "folder", "--save-dir", str(tmp_path / "runs"), "--logger", "csv", "-it", "1"]
    runs = train_runs(*(["x", *common, "--data-home", str(tmp_path / name)] for name in names))
    assert [r.code for r in runs] == [2] * len(names)
    for run, words in zip(runs, said, strict=True):
        assert words in run.err.strip().splitlines()[-1]
        assert "Traceback" not in run.err
    assert not (tmp_path / "runs").exists()


def test_real_audio_trains_from_scratch_and_warm(tmp_path, vocadito):
    home = tmp_path / "home"
    home.mkdir()
    for path in vocadito.glob("vocadito_1*"):
        shutil.copy(path, home / path.name)
    args = ["-d", "folder", "--data-home", str(home), "--save-dir", str(tmp_path), "-pr", "32", "-nw", "0"]
    args += ["--logger", "csv", "-it", "2", "-vit", "1"]
    last = tmp_path / "melody" / "v" / "checkpoints" / "last.ckpt"
    scratch, warm = train_runs(["v", *args], ["w", "--init-ckpt", str(last), *args])
    assert (scratch.code, warm.code) == (0, 0), scratch.err
    assert "vocadito_1.wav with vocadito_1_notesA1.csv" in scratch.out
    assert warm.identity.startswith("identity: warm-start")
