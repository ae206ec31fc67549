from slimwise.paths import StudyPaths


def test_a_study_shares_no_folder_with_another():
    assert StudyPaths.of("mini").grades("full").parts[:2] == ("results", "mini")
    assert StudyPaths.of("h200").root != StudyPaths.of("mini").root


def test_a_changed_model_file_is_an_input_of_the_study(tmp_path):
    paths = StudyPaths(tmp_path)
    (tmp_path / "config.json").touch()
    (tmp_path / "model.safetensors").touch()
    local = paths.model_files(str(tmp_path))
    assert [path.name for path in local] == ["config.json", "model.safetensors"]
    assert paths.model_files("trained") == [paths.trained_backbone / "manifest.json"]
    assert paths.model_files("organisation/model") == []


def test_a_home_folder_and_a_changed_template_are_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    names = ("chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json")
    for name in (*names, "README.md"):
        (tmp_path / name).touch()
    found = StudyPaths(tmp_path).model_files("~")
    assert found == [tmp_path / name for name in names]
