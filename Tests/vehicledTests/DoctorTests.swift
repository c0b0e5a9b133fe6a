// The findings of Diagnose about the disk.

import Testing

@testable import vehicled

@Suite struct DoctorTests {
  @Test(arguments: [
    (5_000_000_000 as UInt64, nil as UInt64?, false, true, "ok"), (50_000_000, 1000, false, true, "warning"),
    (500_000, nil, false, true, "failed"),
    (5_000_000_000, 0, false, true, "failed"), (5_000_000_000, nil, true, true, "failed"), (5_000_000_000, nil, false, false, "failed"),
  ])
  func `the disk check depends on free space, free inodes and write access`(
    _ free: UInt64, _ files: UInt64?, _ isReadOnly: Bool, _ isWritable: Bool, _ state: String
  ) {
    let finding = Doctor.disk("/var/lib/vehicled", free: free, files: files, isReadOnly: isReadOnly, isWritable: isWritable)
    #expect(finding.state == state && (state == "ok") == (finding.remedy == nil))
  }
}
