// The start and the end of a program.

import Glibc
import ServiceRuntime
import Testing

@Suite struct StartupTests {
  /// vehicled-mqtt crashed at its end because OpenSSL's exit handler freed the locks that its thread needed to connect.
  @Test func `a process ends without the exit handlers of libraries, and its output is complete`() async throws {
    let result = await #expect(processExitsWith: .exitCode(3), observing: [\.standardOutputContent]) {
      atexit { abort() }
      print("the last line")
      endProcess(3)
    }
    let output = try #require(result?.standardOutputContent)
    #expect(String(decoding: output, as: UTF8.self).contains("the last line\n"))
  }
}
