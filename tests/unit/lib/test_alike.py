"""Components that are alike: one of them stands for all where the platform knows how."""

from tilewright.hw.lib.alike import alike


class _Once:
    def instance(self, component, parameters):
        return component, parameters


def test_nothing_changes_where_the_platform_has_no_instances():
    component = object()
    assert all(alike(platform, component, 1) is component for platform in (None, "formal"))


def test_a_platform_is_asked_with_the_parameters():
    component = object()
    assert alike(_Once(), component, 1, "i8") == (component, (1, "i8"))
