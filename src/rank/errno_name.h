// Symbolic names of the errors a job's start can meet.
#pragma once

const char* errno_name(int error);
