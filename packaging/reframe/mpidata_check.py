"""A ReFrame check: `mpidata doctor --test` on the nodes of a partition, for example after a new MPI, driver or image.

    reframe -C settings.py -c mpidata_check.py -r

Set the site's modules with -S modules=mpidata/0.2.0, and the nodes with -S num_tasks=2 -S num_tasks_per_node=1.
"""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher
from reframe.core.builtins import performance_function, run_before, sanity_function


@rfm.simple_test
class MpidataDoctor(rfm.RunOnlyRegressionTest):
    """Every value of doctor's two small jobs is correct."""

    descr = "mpidata: two small jobs, whose every value is compared"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "mpidata"
    executable_opts = ["doctor", "--test"]
    time_limit = "5m"
    num_tasks = 1  # doctor starts the ranks of its jobs itself, in an allocation on its nodes

    @run_before("run")
    def is_started_once(self):
        """Run the command without srun or mpirun, because `mpidata` starts these itself."""
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def all_is_well(self):
        """Check that the exit status is 0 and that both jobs are reported as ok."""
        jobs = [sn.assert_found(rf"job in {language} +ok", self.stdout) for language in ("Python", "C")]
        return sn.all([sn.assert_eq(self.job.exitcode, 0), *jobs])

    @performance_function("s")
    def seconds_of_a_job(self):
        """Return the time of the longer job, from the start of `mpidata run` to its end."""
        return sn.max(sn.extractall(r"all correct, in ([\d.]+) s", self.stdout, 1, float))
