// What the tests of the real programs rely on: output of any length, and ends that are noticed whatever a program leaves behind.

import CLinux
import Foundation
import Testing

extension EndToEnd {
  @Suite("The rig of one test") struct RigTests {
    @Test func `output of any length is read`() throws {
      let fill = "dd if=/dev/zero bs=1000 count=300 status=none"
      let outcome = try Rig().run("/bin/sh", ["-c", "\(fill); \(fill) >&2; exit 3"])
      #expect(outcome.status == 3 && outcome.output.utf8.count == 300_000 && outcome.errors.utf8.count == 300_000)
    }

    @Test func `the end of a program is noticed while its child holds the output open`() throws {
      let rig = try Rig()
      let program = try Program("/bin/sh", ["-c", "sleep 60 & echo $!; wait"], in: rig.directory)
      #expect(wait { program.stdout.hasSuffix("\n") })
      let child = try #require(Int32(program.stdout.dropLast()))
      defer { kill(child, SIGKILL) }
      #expect(program.isRunning && program.end(SIGKILL) == -SIGKILL && !program.isRunning)
      #expect(kill(child, 0) == 0)
      #expect(program.outcome().status == -SIGKILL)
    }
  }
}
