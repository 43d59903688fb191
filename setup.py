"""Packaging of edp_mx. Install with launch/setup.sh: the order of the stages matters there."""

import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import Extension, find_packages, setup

# MXNet, GluonNLP and Horovod are no longer developed: exact pins. The rest lives: ranges.
DEAD = ["numpy==1.23.5", "gluonnlp==0.10.0", "horovod==0.28.1"]
LIVING = [
    "cattrs>=24.1,<24.2",  # 26 would push dp-accounting back to 0.4
    "cryptography>=43",
    "fasttext-numpy2>=0.10",
    "huggingface_hub>=0.20",
    "jinja2>=3",
    "matplotlib>=3.5,<3.11",
    "optuna>=4,<6",
    "pooch>=1.8",
    "pyarrow>=14,<18",
    "pyyaml>=6",
    "scikit-learn>=1.1,<1.8",
    "safetensors>=0.4",
    "scipy>=1.9,<1.16",
    "tensorboardX>=2.6",
    "threadpoolctl>=3",
    "tokenizers>=0.15",
    "tqdm>=4.60",
]
SERVE = ["h11>=0.16,<1", "prometheus-client>=0.17"]
ONNX = ["onnx>=1.14,<2", "onnxruntime>=1.15,<2"]  # `edp-mx export --to onnx`, and what asks it
GENERATION = ["nltk>=3.8", "rouge-score>=0.1.2", "sacrebleu>=2.3,<3"]  # scores of generated text
EXTRAS = {
    "cpu": ["mxnet==1.9.1"],
    "cu112": ["mxnet-cu112==1.9.1"],
    "serve": SERVE,
    "generation": GENERATION,
    "onnx": ONNX,
    # `training.tracking`; tensorboardX writes, tensorboard shows
    "mlflow": ["mlflow-skinny>=2.9,<4"],
    "tensorboard": ["tensorboard>=2.9"],
    "wandb": ["wandb>=0.16,<1"],
    "dev": [
        *SERVE,
        *GENERATION,
        *ONNX,
        "hypothesis>=6",
        "pytest>=7",
        "pytest-timeout>=2",
        "pytest-xdist>=3",
        "ruff>=0.17,<0.18",
        "mypy>=1.4",
        "types-PyYAML",
        "mkdocs>=1.5,<2",
        "mkdocstrings[python]>=0.24",
        "seqeval>=1.2",
        "dp-accounting>=0.6,<0.7",  # peers of the accountants
        "prv-accountant>=0.2,<0.3",
    ],
}

NUMBERS = "edp_mx/runtime/numbers.h"
NATIVE = "edp_mx/models/quick/native"
ON_LINUX = sys.platform.startswith("linux")
FAST = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math"]

# Plain C behind ctypes, no Python extension.
KERNELS = Extension(
    "edp_mx.runtime._kernels",
    ["edp_mx/runtime/kernels.c", "edp_mx/dp/privacy/grid_noise.c"],
    depends=[NUMBERS],
    extra_compile_args=[*FAST, "-fopenmp-simd"],
    libraries=["m"],
)


def operators():
    """Return our operators for MXNet, in C++, which need the headers in MXNet's package."""
    mxnet = find_spec("mxnet")
    if mxnet is None:
        sys.exit("edp_mx compiles operators for MXNet, which is missing: run launch/setup.sh")
    folder = Path(mxnet.origin).parent
    return Extension(
        "edp_mx.models.quick._operators",
        [f"{NATIVE}/operators.cc"],
        depends=[NUMBERS, *sorted(str(path) for path in Path(NATIVE).glob("*.h"))],
        include_dirs=[str(folder / name) for name in ("include", "src")],
        extra_compile_args=["-std=c++14", *FAST, "-fopenmp", *(["-fno-gnu-unique"] * ON_LINUX)],
        # keeps our standard C++ apart from other versions in the process's libraries
        extra_link_args=["-fopenmp", *(["-Wl,-Bsymbolic"] * ON_LINUX)],
    )


setup(
    name="edp_mx",
    version="0.2.0",
    description="Differentially private training of intent-and-slot models (eDP-SGD) on MXNet",
    license="Apache-2.0",
    packages=find_packages(include=["edp_mx", "edp_mx.*"]),
    package_data={
        "edp_mx": [
            "py.typed",
            "data/*.yaml",
            "data/synthetic/*.yaml",
            "data/synthetic/grammars/*.yaml",
            "dp/privacy/grid_noise.c",
            "models/checkpoints/*.yaml",
            "models/quick/native/*",
            "reports/templates/*",
            "runs/*.jinja",
            "runs/*.md",
            "runs/exported/shipped/*.py",
            "runtime/kernels.c",
            "runtime/numbers.h",
        ]
    },
    ext_modules=[KERNELS, operators()],
    python_requires=">=3.8,<3.12",
    install_requires=DEAD + LIVING,
    extras_require=EXTRAS,
    entry_points={"console_scripts": ["edp-mx=edp_mx.cli:main"]},
)
