import Glibc
import Protocols
import Synchronization
import Testing

@testable import vehicled

@Suite("Recorder") @Loop struct RecorderTests {
  @Test func keepsTheNewestFilesOfItsDeviceAndLeavesThoseOfOthers() async throws {
    let directory = temporaryDirectory()
    for device in ["ev", "ev-2"] {
      try Files.makeDirectory("\(directory)/recordings/\(device)")
      for day in 1...6 { try Files.write("\(directory)/recordings/\(device)/2020-01-0\(day).ndjson", [], flags: O_TRUNC) }
    }
    let device = device(Probe(), named: "ev")
    let recorder = Recorder(device, disk: Disk(directory: directory))
    device.taps.note(.main, "up")
    recorder.close()
    let names = { (device: String) in Files.list("\(directory)/recordings/\(device)") }
    #expect(await until { names("ev").count == 4 })
    #expect(names("ev").prefix(3) == ["2020-01-04.ndjson", "2020-01-05.ndjson", "2020-01-06.ndjson"])
    #expect(names("ev-2").count == 6)
  }

  @Test func twoRecordersInOneSecondWriteTwoFiles() async throws {
    let directory = temporaryDirectory()
    let disk = Disk(directory: directory)
    let device = device(Probe(), named: "ev")
    for _ in 0..<2 {
      let recorder = Recorder(device, disk: disk)
      device.taps.note(.main, "up")
      recorder.close()
      let now = Clock.wall()
      #expect(await until { Clock.wall() > now + 1000 })
    }
    let folder = "\(directory)/recordings/ev"
    #expect(await until { Files.list(folder).count == 2 })
    for name in Files.list(folder) {
      let recording = try Recording(parsing: Files.read("\(folder)/\(name)", limit: 1 << 20))
      #expect(recording.lines.count == 1)
    }
  }

  @Test func aDiskThatHangsCostsLinesAndNoMemory() async throws {
    let directory = temporaryDirectory()
    let disk = Disk(directory: directory)
    let isFree = Mutex(false)
    disk.run { () throws(ValueError) in
      while !isFree.withLock({ $0 }) { usleep(1000) }
    } then: { _ in
    }
    let device = device(Probe(), named: "ev")
    let recorder = Recorder(device, disk: disk)
    let bytes = [UInt8](repeating: 65, count: 2048)
    for _ in 0..<1000 { device.taps.record(.received, .main, bytes) }
    isFree.withLock { $0 = true }
    recorder.close()
    let folder = "\(directory)/recordings/ev"
    let recorded = { Files.list(folder).first.flatMap { try? Files.read("\(folder)/\($0)", limit: 64 << 20) } ?? [] }
    #expect(await until { recorded().last == UInt8(ascii: "\n") })
    // What was gathered is whole; a line holds four thousand digits.
    let lines = try Recording(parsing: recorded()).lines
    #expect((250..<300).contains(lines.count))
  }
}
