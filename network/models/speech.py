"""Words by a small formant synthesiser, each from another speaker: no package ships speech that may be trained on.

A word is a row of sounds with formants. The voice, pulses at the pitch of the speaker, or noise excites them.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["LENGTH", "RATE", "WORDS", "speak"]

#: Samples in a second, and those of a word with the silence around it.
RATE, LENGTH = 16000, 16000
_HOP, _FRAME, _POINTS = 128, 256, 512
_BANDWIDTHS = np.array([80.0, 110.0, 160.0, 250.0, 350.0])
_HIGHER = (3600, 4600)  # formants that no sound moves


class _Sound(NamedTuple):
    """Milliseconds, the first three formants in Hz, the loudness of the voice and of the noise, and where noise is."""

    lasts: float
    formants: tuple
    voice: float
    noise: float = 0.0
    centre: float = 1000.0
    width: float = 1000.0


def _vowel(lasts, *formants):
    return (_Sound(lasts, formants, 1.0),)


def _stop(centre, loudness, formants, voice=0.0):
    """The mouth is closed, then a burst of noise."""
    return _Sound(60, formants, voice), _Sound(20, formants, voice, loudness, centre, 0.35 * centre)


_E, _OH = _vowel(130, 530, 1840, 2480), _vowel(120, 530, 950, 2400) + _vowel(110, 360, 850, 2300)
_S = (_Sound(150, (400, 1600, 2600), 0.0, 0.5, 6000, 1300),)
_N = (_Sound(90, (250, 1500, 2500), 0.35),)
_P, _T = _stop(900, 0.5, (500, 900, 2300)), _stop(4200, 0.5, (400, 1750, 2700))
_D, _G = _stop(3900, 0.4, (300, 1750, 2700), 0.1), _stop(1900, 0.4, (300, 1900, 2200), 0.1)
_SOUNDS = {
    "yes": _vowel(70, 280, 2250, 2900) + _E + _S,
    "no": _N + _OH,
    "up": _vowel(140, 640, 1190, 2390) + _P,
    "down": _D + _vowel(120, 740, 1280, 2440) + _vowel(80, 420, 950, 2300) + _N,
    "left": (_Sound(80, (360, 1050, 2700), 0.6), *_E, _Sound(90, (400, 1300, 2500), 0.0, 0.15, 5500, 3000), *_T),
    "right": (_Sound(80, (340, 1100, 1600), 0.6), *_vowel(120, 740, 1220, 2440), *_vowel(90, 390, 1990, 2550), *_T),
    "stop": _S + _T + _vowel(140, 710, 1020, 2450) + _P,
    "go": _G + _OH,
}
#: The words, by the number of their class.
WORDS = tuple(_SOUNDS)


def speak(word, rng):
    """A word as a speaker drawn from ``rng`` says it, at a time drawn too: float64 [LENGTH], of -1 to 1."""
    sounds, speed = _SOUNDS[word], rng.uniform(0.8, 1.3)
    seconds = np.array([sound.lasts for sound in sounds]) / 1000 / speed * rng.uniform(0.8, 1.25, len(sounds))
    ends = np.cumsum(seconds)
    begin = rng.uniform(0.05, LENGTH / RATE - 0.05 - ends[-1])
    tract, pitch = rng.uniform(0.85, 1.2), rng.uniform(90, 260)
    formants = np.array([(*sound.formants, *_HIGHER) for sound in sounds]) * tract
    formants[:, :3] *= rng.normal(1, 0.08, (len(sounds), 3))
    # A silence around the word: its formants are those of its ends.
    middles = begin + ends - seconds / 2
    edges = np.concatenate([[begin], begin + ends[:-1], [begin + ends[-1]]])
    times = np.arange(LENGTH // _HOP + 1) * _HOP / RATE
    now = np.searchsorted(edges, times) - 1
    spoken = (now >= 0) & (now < len(sounds))
    now = now.clip(0, len(sounds) - 1)
    tracks = np.stack([np.interp(times, middles, column) for column in formants.T], axis=1)
    voice, noise, centre, width = (np.array([sound[field] for sound in sounds])[now] for field in (2, 3, 4, 5))
    frequencies = np.fft.rfftfreq(_POINTS, 1 / RATE)
    sound = _filtered(_pulses(pitch, times, rng), _resonances(frequencies, tracks) * _smooth(voice * spoken))
    bands = np.exp(-0.5 * ((frequencies - centre[:, np.newaxis] * tract) / width[:, np.newaxis]) ** 2)
    sound += _filtered(rng.normal(0, 1, LENGTH), bands * (noise * spoken)[:, np.newaxis])
    background = _filtered(rng.normal(0, 1, LENGTH), _hum(frequencies, rng))
    background *= np.abs(sound).std() / background.std() * 10 ** (-rng.uniform(0, 25) / 20)
    sound += background
    return sound * (10 ** (-rng.uniform(0, 18) / 20) / np.abs(sound).max())


def _smooth(loudness):
    """A loudness for each frame without steps, as a column."""
    return np.convolve(np.pad(loudness, 1, "edge"), (0.25, 0.5, 0.25), "valid")[:, np.newaxis]


def _pulses(pitch, times, rng):
    """Pulses of the vocal cords: the pitch falls by some amount, and wavers."""
    wavering = 1 + 0.02 * rng.normal(size=len(times)) + np.linspace(0.1, -rng.uniform(0, 0.25), len(times))
    each = np.interp(np.arange(LENGTH) / RATE, times, pitch * wavering)
    return np.diff(np.floor(np.cumsum(each) / RATE), prepend=0) * np.sqrt(RATE / each)


def _resonances(frequencies, tracks):
    """The factor of each frequency, [frames, frequencies]: of formants one after the other, and of the vocal cords."""
    squares = tracks[:, :, np.newaxis] ** 2
    damping = frequencies * _BANDWIDTHS[:, np.newaxis]
    factors = squares / np.hypot(squares - frequencies**2, damping)
    return factors.prod(axis=1) / np.sqrt(1 + (frequencies / 300) ** 2)


def _hum(frequencies, rng):
    """A background between white noise and a low hum, [1, frequencies]."""
    return (1 + frequencies[np.newaxis] / 200) ** -rng.uniform(0, 1)


def _filtered(samples, factors):
    """Samples [LENGTH] whose frames, half of them overlapping, have their frequencies multiplied by ``factors``."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(samples, _HOP), _FRAME)[::_HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FRAME) / _FRAME)
    # Room on both sides for what the filters answer before and after.
    frames = np.pad(frames * window, [(0, 0), ((_POINTS - _FRAME) // 2,) * 2])
    parts = np.fft.irfft(np.fft.rfft(frames) * factors, _POINTS)
    whole = np.zeros((len(parts) + _POINTS // _HOP) * _HOP)
    for first in range(0, _POINTS, _HOP):
        whole[first : first + len(parts) * _HOP] += parts[:, first : first + _HOP].ravel()
    return whole[_FRAME : _FRAME + LENGTH]
