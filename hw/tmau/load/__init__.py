"""The load path: from bus words to lines of shared memory."""
