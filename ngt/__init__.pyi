from ngt.api.loading import Controller as Controller
from ngt.api.loading import load_demos as load_demos
from ngt.api.loading import load_policy as load_policy
from ngt.api.loading import load_runs as load_runs
from ngt.api.training import Run as Run
from ngt.api.training import expert as expert
from ngt.api.training import imitate as imitate

__version__: str
