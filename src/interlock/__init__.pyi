from interlock.config import SchemaLimits as SchemaLimits
from interlock.constraints.providers.base import Matcher as Matcher
from interlock.core.tools import Tool as Tool
from interlock.core.tools import ToolChoice as ToolChoice
from interlock.core.tools import ToolContext as ToolContext
from interlock.errors import InterlockError as InterlockError
from interlock.errors import Problem as Problem
from interlock.library.constraint import Constraint as Constraint
from interlock.library.model import Model as Model
from interlock.library.parser import Parser as Parser
from interlock.library.parser import TextParser as TextParser
from interlock.library.schemas import check_schema as check_schema
from interlock.library.schemas import schema_of as schema_of
from interlock.library.schemas import tool_of as tool_of
from interlock.library.turn import Turn as Turn

__version__: str
