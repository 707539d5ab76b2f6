"""What the hardware means: numpy, no cycles, no streams.

Names are imported when they are first used, so that hardware, which needs ``golden.spec`` alone, needs no numpy.
"""

from importlib import import_module

#: Public names, by the module that defines them.
_MODULES = {
    "cluster.cores": "Cores",
    "cluster.implicit_gemm": "ClusterGemm",
    "cluster.machine": "Cluster delivery_bits",
    "conv.banks": "read_share request_cycles",
    "conv.granularity": "seed_granularity",
    "conv.layer": "ConvLayer PostProcessing convolve",
    "conv.machine": "Conv ConvRecord job_word",
    "conv.plan": "ConvPlan convolution_plans most_steps plan_convolution",
    "conv.shape": "ConvShape",
    "core.implicit_gemm": "ImplicitGemm",
    "core.layer_program": "LayerProgram",
    "core.machine": "Core DeadlockError ProgramRecord Step",
    "core.words": "conv_words page_words program_bytes program_word segment_words tmau_word",
    "dot_product": "dot",
    "memory": "GlobalMemory Memory",
    "pe.gemm": "lower_gemm",
    "pe.gemm_plan": "Gemm",
    "pe.machine": "Fault Pe PeSizes instruction_word",
    "pe.placement": "Placement",
    "pe.program": "Program gemm_program multiply",
    "pe.segment": "Segment wrong_segment",
    "spec.conv.params": "CONV_PRESETS ConvParams",
    "tmau.align": "Alignment Operator Padding align unalign",
    "tmau.block": "copy_block prefetch_block",
    "tmau.calls": "CommandError",
    "tmau.copy": "check_block",
    "tmau.descriptor": "Refusal check_word",
    "tmau.limits": "Limits limits",
    "tmau.load": "load prefetch",
    "tmau.machine": "ErrorRecord Machine command_word",
    "tmau.setup": "check_command",
    "tmau.store": "store",
    "tmau.tensor_map": "DescriptorError TensorMap",
    "tmau.tile": "tx_bytes",
    "tmau.windows": "Windows",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value


def __dir__():
    return __all__
