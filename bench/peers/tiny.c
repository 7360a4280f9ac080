/* The smallest child for Windows: no C runtime, one library, and out again. The build script of haft-bench builds it. */
__declspec(dllimport) __declspec(noreturn) void __stdcall ExitProcess(unsigned int code);

__declspec(noreturn) void begin(void)
{
    ExitProcess(0);
}
