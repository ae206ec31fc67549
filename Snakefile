# One study from calibration to figures: python3 workflow/launch.py run
from snakemake.utils import min_version

min_version("9.27.1")


configfile: "config/default.yaml"


report: "workflow/report/study.rst"


# Overlays given with --configfile are merged over both.
if "study" not in config:

    configfile: "config/mini.yaml"


include: "workflow/rules/00_study.smk"
include: "workflow/rules/10_backbone.smk"
include: "workflow/rules/20_calibrate.smk"
include: "workflow/rules/30_select.smk"
include: "workflow/rules/40_export.smk"
include: "workflow/rules/50_distill.smk"
include: "workflow/rules/60_serve.smk"
include: "workflow/rules/65_sweep.smk"
include: "workflow/rules/70_evaluate.smk"
include: "workflow/rules/75_cross_check.smk"
include: "workflow/rules/77_coverage.smk"
include: "workflow/rules/79_throughput.smk"
include: "workflow/rules/80_report.smk"
include: "workflow/rules/85_measured.smk"


# Tables, figures and page of some studies are committed; the study's record, from which the page
# follows, never is, so a fresh clone computes them again.
rule all:
    default_target: True
    input:
        paths.report,
        [paths.checkpoint(decoder) for decoder in study.distilled_decoders()],
