"""Golden model (temporary lazy imports while helpers work)."""
import importlib
_M={'ErrorRecord': '.machine', 'Machine': '.machine', 'command_word': '.machine', 'GlobalMemory': '.memory', 'Memory': '.memory', 'Refusal': '.tmau.descriptor', 'check_word': '.tmau.descriptor', 'Limits': '.tmau.limits', 'limits': '.tmau.limits', 'load': '.tmau.load', 'check_command': '.tmau.setup', 'DescriptorError': '.tmau.tensor_map', 'TensorMap': '.tmau.tensor_map', 'tx_bytes': '.tmau.tile'}
def __getattr__(n):
    if n in _M:
        m=importlib.import_module(_M[n] if _M[n]!="." else "."+n, __name__)
        return m if _M[n]=="." else getattr(m,n)
    raise AttributeError(n)
