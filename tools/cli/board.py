"""``tilewright board``: moves a photograph on a board, and compares every byte with the golden model."""

from dataclasses import replace

from tilewright.board.host import BoardHost, SerialLink, SimulatedLink
from tilewright.board.photograph import HEIGHT, TILE, WIDTH, move_photograph
from tilewright.files import BUILD, writable
from tilewright.progress import working
from tilewright.sim.workloads.photographs import load_photographs

from ..fpga.boards import BOARDS

__all__ = ["configure", "run"]

_PICTURE = BUILD / "board"
#: Cycles of a bit in simulation, where the line may be fast.
_FAST = 4


def configure(parser):
    """Adds the arguments of the subcommand."""
    parser.add_argument("--board", choices=list(BOARDS), default="ulx3s-85f", help="which (%(default)s)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--port", metavar="FILE", help="serial port of the board, such as /dev/ttyUSB0")
    where.add_argument("--simulated", action="store_true", help="simulate the design instead")


def run(args):
    """Runs the subcommand. The status is 1 if a byte differs from the golden model."""
    from PIL import Image

    board = BOARDS[args.board]
    params = replace(board.params, cycles_per_bit=_FAST) if args.simulated else board.params
    photo = load_photographs((HEIGHT, WIDTH))[0]
    with writable(_PICTURE):  # before the work
        pass
    with working(args.board), _link(args, board, params) as link:
        moved = move_photograph(BoardHost(link, params), params, photo)
    picture = _PICTURE / f"{args.board}.png"
    with writable(_PICTURE):
        Image.fromarray(moved.framed).save(picture)
    print(f"{args.board}, {'simulated' if args.simulated else args.port}: {WIDTH} x {HEIGHT} pixels")
    print(f"{moved.tiles} tiles of {TILE[0]} bytes x {TILE[1]} rows loaded and stored in {moved.cycles:,} cycles, "
          f"{1000 * moved.cycles / (board.mhz * 1e6):.2f} ms at {board.mhz} MHz")  # fmt: skip
    print(f"{moved.compared:,} bytes of both memories equal the golden model's")
    print(picture)
    return 0


def _link(args, board, params):
    if args.simulated:
        return SimulatedLink(params)
    return SerialLink(args.port, int(board.mhz * 1e6) // params.cycles_per_bit)
