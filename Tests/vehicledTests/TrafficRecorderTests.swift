import FoundationEssentials
import Glibc
import Protocols
import ServiceRuntime
import Synchronization
import Testing
import Varlink

@testable import vehicled

@Suite("Traffic recorder") @Loop struct TrafficRecorderTests {
  /// The complete recordings: a file appears before its content is written.
  private func recordings(in folder: String) -> [Recording] {
    Files.list(folder).compactMap { try? Recording(parsing: Files.read("\(folder)/\($0)", limit: 1 << 20)) }
  }

  @Test func `only the oldest recordings of the same device are deleted`() async throws {
    let directory = temporaryDirectory()
    for device in ["ev", "ev-2"] {
      try Files.makeDirectory("\(directory)/recordings/\(device)")
      for day in 1...6 { try Files.write("\(directory)/recordings/\(device)/2020-01-0\(day).ndjson", [], flags: O_CREAT | O_TRUNC) }
    }
    let device = device(Probe(), named: "ev")
    let recorder = TrafficRecorder(device, disk: Disk(directory: directory))
    device.monitor.linkCameUp(.main)
    recorder.close()
    let names = { (device: String) in Files.list("\(directory)/recordings/\(device)") }
    #expect(await until { names("ev").count == 4 })
    #expect(names("ev").suffix(3) == ["2020-01-04.ndjson", "2020-01-05.ndjson", "2020-01-06.ndjson"])
    #expect(names("ev")[0].hasPrefix("000001-20"))
    #expect(names("ev-2").count == 6)
  }

  @Test func `a clock that is behind does not delete newer files`() async throws {
    let folder = "\(temporaryDirectory())/recordings/ev"
    try Files.makeDirectory(folder)
    let earlier = [
      "2098-01-01.ndjson", "000008-2099-01-01.ndjson", "000009-2099-01-02.ndjson", "000010-1970-01-01.ndjson", "000011-2099-01-03.ndjson",
    ]
    for name in earlier { try Files.write("\(folder)/\(name)", [], flags: O_CREAT) }
    let device = device(Probe(), named: "ev")
    let recorder = TrafficRecorder(device, disk: Disk(directory: String(folder.dropLast("/recordings/ev".count))))
    device.monitor.linkCameUp(.main)
    recorder.close()
    #expect(await until { Files.list(folder).count == 4 })
    #expect(Array(Files.list(folder).prefix(3)) == Array(earlier.suffix(3)))
    #expect(Files.list(folder)[3].hasPrefix("000012-"))
  }

  @Test func `two recorders in one second write two files`() async throws {
    let directory = temporaryDirectory()
    let disk = Disk(directory: directory)
    let device = device(Probe(), named: "ev")
    for _ in 0..<2 {
      let recorder = TrafficRecorder(device, disk: disk)
      device.monitor.linkCameUp(.main)
      recorder.close()
      let now = Clock.wall()
      #expect(await until { Clock.wall() > now + 1000 })
    }
    let folder = "\(directory)/recordings/ev"
    #expect(await until { recordings(in: folder).count == 2 })
    #expect(recordings(in: folder).allSatisfy { $0.lines.last?.text == "up" })
  }

  @Test func `a hanging disk drops lines, and memory use stays bounded`() async throws {
    let directory = temporaryDirectory()
    let disk = Disk(directory: directory)
    let isFree = Mutex(false)
    disk.run { () throws(ValueError) in
      while !isFree.withLock({ $0 }) { usleep(1000) }
    } then: { _ in
    }
    let device = device(Probe(), named: "ev")
    let recorder = TrafficRecorder(device, disk: disk)
    let bytes = [UInt8](repeating: 65, count: 2048)
    for _ in 0..<1000 { device.monitor.record(.received, .main, bytes) }
    isFree.withLock { $0 = true }
    let folder = "\(directory)/recordings/ev"
    let recorded = { Files.list(folder).compactMap { try? Files.read("\(folder)/\($0)", limit: 64 << 20) } }
    // The buffered lines are complete (4,000 digits each). Then a new file is started.
    #expect(await until { recorded().count == 1 && recorded()[0].last == UInt8(ascii: "\n") })
    #expect(
      await until {
        device.monitor.record(.received, .main, [66])
        return recorded().count == 2
      })
    recorder.close()
    let lines = try recorded().map { try Recording(parsing: $0).lines }
    #expect((250..<300).contains(lines[0].count))
    #expect(!lines[1].isEmpty && lines[1].allSatisfy { $0.bytes == [66] })
  }

  @Test func `after a failure a new, complete file is started`() async throws {
    let directory = temporaryDirectory()
    let device = device(Probe(), named: "ev")
    device.monitor.linkCameUp(.main)
    device.monitor.record(.sent, .main, Array("ATZ\r".utf8))
    let recorder = TrafficRecorder(device, disk: Disk(directory: directory), retryDelay: 20 * .millisecond)
    let folder = "\(directory)/recordings/ev"
    #expect(await until { Files.list(folder).count == 1 })
    for name in Files.list(folder) { unlink("\(folder)/\(name)") }
    rmdir(folder)
    #expect(
      await until {
        device.monitor.record(.sent, .main, [67])
        return Files.list(folder).count == 1
      })
    recorder.close()
    let path = "\(folder)/\(Files.list(folder)[0])"
    #expect(await until { (try? Recording(parsing: Files.read(path, limit: 1 << 20)).lines.last?.bytes) == [67] })
    let lines = try Recording(parsing: Files.read(path, limit: 1 << 20)).lines
    // Includes what was sent before the recorder subscribed.
    #expect(lines[1].bytes == Array("ATZ\r".utf8))
  }

  @Test func `the start of a session is buffered up to a limit, without secrets`() throws {
    let monitor = LinkMonitor()
    #expect(monitor.isIdle)
    monitor.linkCameUp(.main)
    monitor.record(.sent, .main, Array("ATZ\r".utf8))
    monitor.record(.sent, .main, Array("password".utf8), secret: true)
    monitor.record(.received, .main, [])
    monitor.record(.received, .main, [UInt8](repeating: 0x3E, count: 700))
    // This exchange does not fit as a whole, so it is left out.
    monitor.record(.sent, .main, [0])
    #expect(!monitor.isIdle)
    monitor.record(.received, .main, [UInt8](repeating: 0x3E, count: 700))
    #expect(monitor.isIdle)
    monitor.record(.received, .main, [1])
    var lines: [String] = []
    let subscription = monitor.add { lines.append($0) }
    monitor.record(.received, .main, [2])
    monitor.record(.sent, .main, [3])
    monitor.record(.received, .main, [4])
    let header = #"{"date":"2026-01-01T00:00:00Z","device":"ev","format":1,"kind":"obd"}"#
    let recording = try Recording(parsing: Array(([header] + lines).joined(separator: "\n").utf8) + [10])
    #expect(recording.lines.map(\.text) == ["up", nil, "secret: 8 bytes", nil, nil, nil, nil])
    #expect(recording.lines.map(\.bytes?.count) == [nil, 4, nil, 0, 700, 1, 1])
    #expect(recording.lines.map(\.dir) == [.state, .sent, .sent, .received, .received, .sent, .received])
    #expect(recording.lines[0].t == 0 && zip(recording.lines, recording.lines.dropFirst()).allSatisfy { $0.t <= $1.t })
    monitor.remove(subscription)
    monitor.linkWentDown(.main, "unplugged")
    #expect(monitor.isIdle)
  }

  @Test func `the traffic of a link that only receives is recorded from the subscription on`() throws {
    let monitor = LinkMonitor()
    monitor.linkCameUp(.main, onlyReceives: true)
    #expect(monitor.isIdle, "there is no opening that a recording needs")
    var lines: [String] = []
    let subscription = monitor.add { lines.append($0) }
    monitor.record(.received, .main, [1])
    monitor.record(.received, .main, [2])
    #expect(lines.count == 2 && lines[0].contains(#""hex":"01""#))
    monitor.remove(subscription)
  }

  @Test func `the header has the wall time from which the times count`() async throws {
    let device = device(Probe(), named: "ev")
    let before = Clock.wall()
    device.monitor.linkCameUp(.main)
    let after = Clock.wall()
    #expect(await until { Clock.wall() > after + 50_000 })
    let start = try #require(device.recordingHeader(from: device.monitor.start).start)
    #expect((before - 5000...after + 5000).contains(start), "the recording begins with the opening of the link: \(start - before) µs")
    let directory = temporaryDirectory()
    let recorder = TrafficRecorder(device, disk: Disk(directory: directory))
    recorder.close()
    let folder = "\(directory)/recordings/ev"
    #expect(await until { recordings(in: folder).count == 1 })
    let recording = try #require(recordings(in: folder).first)
    #expect(abs((recording.header.start ?? 0) - start) < 5000)
  }

  @Test func `messages are recorded with the time at which they were received, in order`() throws {
    let device = device(Probe(), links: [(.main, .can(interface: "vehicled-none"))])
    let port = try #require(device.ports.first)
    var lines: [String] = []
    let start = Clock.monotonic() - .second
    let subscription = device.monitor.add(from: start) { lines.append($0) }
    device.received([1], from: port, at: start + 200 * .millisecond)
    device.received([2], from: port, at: start + 100 * .millisecond)
    device.received([3], from: port)
    device.monitor.remove(subscription)
    let times = try lines.map { try JSONDecoder().decode(Recording.Line.self, from: Data($0.utf8)).t / .millisecond }
    #expect(times.prefix(2) == [200, 200] && times.count == 3 && times[2] >= 1000, "\(times)")
  }

  @Test func `a recording with an incomplete last line is read`() throws {
    let text =
      #"{"date":"2026-01-01T00:00:00Z","device":"ev","format":1,"kind":"obd"}"# + "\n" + #"{"t":1,"link":"main","dir":"rx","hex":"41"}"#
      + "\n"
    #expect(try Recording(parsing: Array((text + #"{"t":2,"li"#).utf8)).lines.count == 1)
    #expect(throws: ValueError.self) { try Recording(parsing: Array((text + #"{"t":2,"li"# + "\n").utf8)) }
  }
}
