from slimwise.generate.config import EvaluationConfig


def test_files_of_a_local_folder_are_inputs(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("gsm8k/train.jsonl", "gsm8k/test.jsonl", "gsm8k/notes.md", "bfcl_v4/a.json"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).touch()
    found = EvaluationConfig(benchmarks=("gsm8k",), data_folder="~/data").data_files()
    names = [str(path.relative_to(tmp_path / "data")) for path in found]
    assert names == ["bfcl_v4/a.json", "gsm8k/test.jsonl", "gsm8k/train.jsonl"]
    assert EvaluationConfig(benchmarks=("gsm8k",)).data_files() == []
