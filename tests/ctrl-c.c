// Sends Ctrl-C to a command on its console once a file has contents, and returns the command's exit code: ctrl-c.exe FILE COMMAND_LINE
#include <stdio.h>
#include <windows.h>

static BOOL WINAPI go_on(DWORD event) { return event == CTRL_C_EVENT; }

int main(int count, char **arguments) {
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    WIN32_FILE_ATTRIBUTE_DATA file = {0};
    DWORD code;
    if (count != 3 || !CreateProcessA(NULL, arguments[2], NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) {
        fprintf(stderr, "cannot start the command: %lu\n", GetLastError());
        return 255;
    }
    SetConsoleCtrlHandler(go_on, TRUE);
    while (file.nFileSizeLow == 0 && WaitForSingleObject(process.hProcess, 1) == WAIT_TIMEOUT)
        GetFileAttributesExA(arguments[1], GetFileExInfoStandard, &file);
    if (!GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0))
        fprintf(stderr, "cannot send Ctrl-C: %lu\n", GetLastError());
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
