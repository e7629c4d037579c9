// Sends Ctrl-C (0) or Ctrl-Break (1) to a command on its console once a file has contents, and returns the command's exit code:
// ctrl-c.exe EVENT FILE COMMAND_LINE
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

static BOOL WINAPI go_on(DWORD event) { return event <= CTRL_BREAK_EVENT; }

int main(int count, char **arguments) {
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    WIN32_FILE_ATTRIBUTE_DATA file = {0};
    DWORD code;
    if (count != 4 || !CreateProcessA(NULL, arguments[3], NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) {
        fprintf(stderr, "cannot start the command: %lu\n", GetLastError());
        return 255;
    }
    SetConsoleCtrlHandler(go_on, TRUE);
    while (file.nFileSizeLow == 0 && WaitForSingleObject(process.hProcess, 1) == WAIT_TIMEOUT)
        GetFileAttributesExA(arguments[2], GetFileExInfoStandard, &file);
    if (!GenerateConsoleCtrlEvent(atoi(arguments[1]), 0))
        fprintf(stderr, "cannot send it: %lu\n", GetLastError());
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
