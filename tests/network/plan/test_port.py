"""Words that pass the ports of a cluster: a word a cycle each, first come, first served."""

from tilewright.network.plan.port import Port


def test_a_port_passes_a_word_a_cycle():
    port = Port()
    assert port.pass_words(10, 100) == 110
    assert port.pass_words(0, 20) == 120  # the 64 cycles from 0 on pass 64 words, those from 64 on the others
    assert Port().pass_words(70, 0) == 70


def test_two_ports_pass_two():
    port = Port(2)
    assert port.pass_words(10, 100) == 60
    assert port.pass_words(10, 100) == 100
    assert port.pass_words(1000, 3) == 1002
