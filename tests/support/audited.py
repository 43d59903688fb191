"""Steps to audit, in the words of a configuration."""

from edp_mx.attacks.audit.audited_step import AuditedStep
from edp_mx.dp.accounting.config import PrivacyConfig


def audited_step(
    num_workers, *, micro_batch_size=16, layer_scales=(1.0, 0.25), sample_rate=0.5, **privacy
):
    """The step of micro-batches (or units per worker) of a size; by the loop, if not told else."""
    given = {"noise_multiplier": 1.0, "clipping": "loop", **privacy}
    unit = given.get("unit", "micro_batch")
    config = PrivacyConfig(mechanism="edp_sgd" if unit == "micro_batch" else "dp_sgd", **given)
    return AuditedStep.of(
        config,
        batch_size=num_workers * config.micro_batches_per_worker * micro_batch_size,
        num_workers=num_workers,
        layer_scales=layer_scales,
        sample_rate=sample_rate,
    )
