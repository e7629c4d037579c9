// Sends Ctrl-Break to a command once a file has contents, and returns its exit code: ctrl-break.exe FILE COMMAND_LINE
#include <stdio.h>
#include <windows.h>

int main(int count, char **arguments) {
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    WIN32_FILE_ATTRIBUTE_DATA file = {0};
    DWORD code;
    // Without a console there is no Ctrl-Break.
    AllocConsole();
    if (count != 3 || !CreateProcessA(NULL, arguments[2], NULL, NULL, TRUE, CREATE_NEW_PROCESS_GROUP, NULL, NULL, &startup, &process)) {
        fprintf(stderr, "cannot start the command: %lu\n", GetLastError());
        return 255;
    }
    while (file.nFileSizeLow == 0 && WaitForSingleObject(process.hProcess, 1) == WAIT_TIMEOUT)
        GetFileAttributesExA(arguments[1], GetFileExInfoStandard, &file);
    if (!GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, process.dwProcessId))
        fprintf(stderr, "cannot send Ctrl-Break: %lu\n", GetLastError());
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
