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
