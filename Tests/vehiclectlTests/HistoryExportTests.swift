// Export and import: every format with awkward values, and that what is exported can be imported again.

import Foundation
import FoundationXML
import Protocols
import SampleBlocks
import Testing
import Varlink

@testable import vehiclectl

@Suite struct HistoryExportTests {
  /// A directory for files.
  private final class Directory {
    let path = "/tmp/vehiclectl-test-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
    deinit { try? FileManager.default.removeItem(atPath: path) }
    func write(_ text: String, _ name: String = "file") throws -> String {
      try text.write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
      return "\(path)/\(name)"
    }
  }

  @Test func `CSV has a row for each time, units in the titles, and reasons if asked`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let plain = try rig.run("history", "export", "--csv", "--device", "ev")
    #expect(
      plain.status == 0 && plain.stderr.contains("skipped a damaged block: block 7 of ev") && plain.stderr.contains("exported 6 samples"))
    #expect(
      plain.stdout
        == [
          "time,time_us,ev.speed (km/h),ev.gear,ev.rpm (rpm)", #"2026-11-23T08:12:00+01:00,1795417920000000,50,"d, ""sport""",3308"#,
          "2026-11-23T08:12:01.250000+01:00,1795417921250000,50.4,,", "2026-11-23T08:12:02+01:00,1795417922000000,,,-10", "",
        ].joined(separator: "\r\n"))
    let reasons = try rig.run("history", "export", "--csv", "--device", "ev", "--property", "s*", "--reasons", environment: ["TZ": "UTC"])
    #expect(reasons.stdout.hasPrefix("time,time_us,ev.speed (km/h),reason\r\n2026-11-23T07:12:00+00:00,1795417920000000,50,\r\n"))
    #expect(reasons.stdout.hasSuffix("1795417922000000,,ev.speed: stale\r\n"))
  }

  @Test func `all devices are merged by time`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let times = try rig.run("history", "export", "--ndjson").stdout.split(separator: "\n").map { line -> Int in
      guard case .int(let time)? = JSON(String(line))?["time"] else { return 0 }
      return time
    }
    #expect(times.count == 20 && times == times.sorted())
  }

  @Test func `JSON lines have types, units and reasons`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let lines = try rig.run("history", "export", "--ndjson", "--device", "ev", "--property", "speed", "--property", "gear").stdout
      .split(separator: "\n")
    #expect(lines.count == 4)
    #expect(
      lines[0] == #"{"time":1795417920000000,"device":"ev","property":"speed","type":"float","unit":"km/h","value":50}"#)
    #expect(lines[1] == #"{"time":1795417920000000,"device":"ev","property":"gear","type":"string","value":"d, \"sport\""}"#)
    #expect(lines[3].hasSuffix(#""value":null,"reason":"stale"}"#))
  }

  @Test func `Influx lines have types and escapes, and no absent values`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let lines = try rig.run("history", "export", "--influx", "--device", "ev").stdout.split(separator: "\n")
    #expect(
      lines == [
        #"vehicled,device=ev speed=50,gear="d, \"sport\"",rpm=3308i 1795417920000000000"#,
        "vehicled,device=ev speed=50.4 1795417921250000000",
        "vehicled,device=ev rpm=-10i 1795417922000000000",
      ])
    let nasty = HistoryContract.Series(id: 1, device: "a b", property: "c,d=e", type: "string")
    let row = ExportRow(time: 1, samples: [(0, .init(series: 1, time: 1, value: .string("\\\n\"")))])
    #expect(InfluxExport([nasty]).row(row) == #"vehicled,device=a\ b c\,d\=e="\\\n\"" 1000"# + "\n")
  }

  @Test func `VSS signals have their own names, units and values`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try rig.run("history", "export", "--ndjson", "--names", "vss", "--device", "ev")
    #expect(outcome.status == 0, "\(outcome)")
    let lines = outcome.stdout.split(separator: "\n").compactMap { JSON(String($0)) }
    let properties = Set(lines.compactMap { $0["property"]?.string })
    #expect(properties.isSuperset(of: ["Vehicle.Speed", "Vehicle.IsMoving"]), "\(outcome.stdout)")
    #expect(lines.allSatisfy { $0["property"]?.string?.hasPrefix("Vehicle.") == true })
    let rejected = try rig.run("history", "export", "--blocks", "--names", "vss")
    #expect(rejected.status == 2 && rejected.stderr.contains("--names vss requires --csv, --ndjson or --influx"))
  }

  @Test func `GPX has a segment for each part without gaps, and values as extensions`() throws {
    let rig = try HistoryRig()
    defer { rig.stop() }
    let outcome = try rig.run("history", "export", "--gpx", "--device", "ev", "--property", "speed", "--property", "rpm")
    #expect(outcome.status == 0, "\(outcome)")
    let parser = XMLParser(data: Data(outcome.stdout.utf8))
    #expect(parser.parse(), "\(String(describing: parser.parserError))")
    #expect(outcome.stdout.ranges(of: "<trkseg>").count == 2 && outcome.stdout.ranges(of: "<trkpt ").count == 4)
    #expect(
      outcome.stdout.contains(
        #"<trkpt lat="52.5" lon="13.4"><ele>34.5</ele><time>2026-11-23T07:12:00Z</time><extensions>"#
          + #"<v:value name="ev.speed" unit="km/h">50</v:value><v:value name="ev.rpm" unit="rpm">3308</v:value></extensions></trkpt>"#))
    let bare = try rig.run("history", "export", "--gpx").stdout
    #expect(!bare.contains("<extensions>") && bare.ranges(of: "<trkpt ").count == 4)
  }

  @Test func `a file appears when it is complete, and is not overwritten`() throws {
    let rig = try HistoryRig()
    let directory = try Directory()
    defer { rig.stop() }
    let path = "\(directory.path)/out.csv"
    let outcome = try rig.run("history", "export", "--csv", "--output", path, "--json")
    #expect(outcome.status == 0 && outcome.stdout.hasPrefix(#"{"samples":20,"bytes":"#), "\(outcome)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["out.csv"])
    let again = try rig.run("history", "export", "--csv", "--output", path)
    #expect(again.status == 2 && again.stderr.contains("it exists"))
    #expect(try rig.run("history", "export", "--csv", "--output", path, "--force").status == 0)
    #expect(try rig.run("history", "export", "--csv", "--json").status == 2)
    #expect(try rig.run("history", "export").status == 2)
    #expect(try rig.run("history", "export", "--csv", "--output", "/proc/none/x").status == 1)
  }

  @Test func `--force writes to a pipe instead of replacing it`() throws {
    let rig = try HistoryRig()
    let directory = try Directory()
    defer { rig.stop() }
    let path = "\(directory.path)/pipe"
    #expect(mkfifo(path, 0o600) == 0)
    let reader = open(path, O_RDWR)
    defer { close(reader) }
    #expect(try rig.run("history", "export", "--csv", "--output", path, "--force").status == 0)
    var (state, bytes) = (stat(), [UInt8](repeating: 0, count: 1 << 16))
    #expect(lstat(path, &state) == 0 && state.st_mode & S_IFMT == S_IFIFO)
    let count = read(reader, &bytes, bytes.count)
    #expect(count > 0 && String(decoding: bytes[..<max(0, count)], as: UTF8.self).hasPrefix("time,"))
  }

  @Test(arguments: ["--blocks", "--ndjson", "--csv"]) func `what is exported can be imported`(_ format: String) throws {
    let rig = try HistoryRig()
    let directory = try Directory()
    defer { rig.stop() }
    let path = "\(directory.path)/export"
    let reasons = format == "--csv" ? ["--reasons"] : []
    let exported = try Program.run(
      ["history", "export", format, "--output", path] + reasons, environment: ["VEHICLED_HISTORY_SOCKET": rig.path])
    try #require(exported.status == 0, "\(exported)")
    let outcome = try rig.run("history", "import", path, "--json")
    #expect(outcome.status == 0 && outcome.stdout == "{\"samples\":12,\"blocks\":2}\n", "\(outcome)")
    let calls = rig.changes
    #expect(Set(calls.map { $0["source"]?.string }).count == 1 && calls.allSatisfy { $0["source"]?.string?.hasPrefix("export ") == true })
    for call in calls {
      let device = call["device"]?.string ?? ""
      let line = try #require(BlockLine(call))
      let block = try Block(try #require(Base64.decode(line.block)))
      var found: [String] = []
      for series in line.series {
        let original = try #require(HistoryRig.series.first { $0.device == device && $0.property == series.property })
        #expect(series.type == original.type && series.unit == original.unit)
        for sample in try #require(try block.column(series.id)).samples {
          found.append("\(sample.time) \(series.property) \(sample.content)")
        }
      }
      let expected = HistoryRig.samples(device).map { sample in
        let name = HistoryRig.series.first { $0.id == sample.series }?.property ?? ""
        let content: Reading.Content = sample.value.map { .value($0) } ?? .absent(sample.reason ?? "")
        return "\(sample.time) \(name) \(content)"
      }
      #expect(found.sorted() == expected.sorted())
      #expect(call["continues"] == .bool(false) && block.start == HistoryRig.morning)
    }
    // The same file gives the same blocks, so that the service can ignore them.
    #expect(try rig.run("history", "import", path).status == 0)
    for (call, first) in zip(rig.changes.suffix(2), calls) {
      #expect(call["source"] == first["source"] && call["block"] == first["block"] && call["device"] == first["device"])
    }
  }

  @Test(arguments: [
    (#"{"time":1,"device":"Bad Name","property":"speed","value":1}"#, "invalid device name \"Bad Name\""),
    (#"{"time":9007199254740993,"device":"ev","property":"speed","value":1}"#, "the time 9007199254740993 is out of range"),
    (#"{"time":2,"device":"ev","property":"","value":1}"#, "the property has more than 64 bytes"),
  ])
  func `a mistake in the last line names it, and nothing is imported`(_ line: String, _ reason: String) throws {
    let rig = try HistoryRig()
    let directory = try Directory()
    defer { rig.stop() }
    let path = "\(directory.path)/file.ndjson"
    // More lines than a block holds.
    let lines = (0..<60_000).map { #"{"time":\#($0 * 50_000),"device":"first","property":"speed","value":\#($0)}"# } + [line]
    try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
    let outcome = try rig.run("history", "import", path)
    #expect(
      outcome.status != 0 && outcome.stderr.contains(":60001: \(reason)") && outcome.stderr.contains("nothing was imported"), "\(outcome)")
    #expect(rig.changes == [])
  }

  @Test func `blocks end where recording stopped, and cover the time up to the next one`() throws {
    let series = HistoryContract.Series(id: 1, device: "ev", property: "rpm", type: "int")
    var assembler = BlockLines("ev", from: 1_000_000)
    var lines: [BlockLine] = []
    func add(_ time: Int, _ value: Int?) throws {
      let sample = HistoryContract.Sample(
        series: 1, time: time, value: value.map { .int($0) }, reason: value == nil ? BlockLines.notRecorded : nil)
      if let line = try assembler.append(sample, of: series) { lines.append(line) }
    }
    try add(500_000, 7)  // valid at the start of the export
    for index in 0..<30_000 { try add(1_000_000 + index * 50_000, index) }
    try add(1_600_000_000, nil)
    try add(1_600_000_000, nil)
    try add(1_700_000_000, 1)
    if let line = assembler.flush() { lines.append(line) }
    let blocks = try lines.map { try Block(try #require(Base64.decode($0.block))) }
    #expect(blocks.first?.start == 1_000_000 && blocks.last?.start == 1_700_000_000 && blocks.last?.end == 1_700_000_000)
    #expect(lines.map(\.continues) == [false] + [Bool](repeating: true, count: blocks.count - 2) + [false])
    for (block, next) in zip(blocks.dropLast(2), blocks.dropFirst()) { #expect(block.end == next.start) }
    #expect(blocks[blocks.count - 2].end == 1_600_000_000)
    #expect(try blocks.reduce(0) { try $0 + ($1.column(1)?.count ?? 0) } == 30_002)
  }

  @Test(arguments: [
    ("", "not a file written by"), ("hello\n", "not a file written by"),
    ("time,time_us,speed\r\n", "file:1: the column \"speed\" is not named"),
    ("time,time_us,ev.x\r\n2026-11-23T08:12:00+01:00,1,1,2\r\n", "file:2: 4 cells instead of 3"),
    ("time,ev.x\r\nyesterday,1\r\n", "file:2: no time: \"yesterday\""), ("time_us,ev.x\r\n2,1\r\n1,1\r\n", "file:3: the time is before"),
    ("time_us,ev.x,reason\r\n2,,stale\r\n", "file:2: the reason \"stale\""),
    ("time_us,ev.x\r\n1,\"open\r\n", "a quoted cell is not closed"),
    ("{\"time\":1}\n", "file:1: \"time\", \"device\" or"), ("{\"time\":1\n", "file:1: not JSON"),
    (#"{"time":1,"device":"ev","property":"x","type":"int","value":"a"}"# + "\n", "file:1: the value of x is not a whole number"),
    (#"{"format":"vehicled-blocks","version":1}"# + "\n{}\n", "file:2: not a line of a block file"),
    (
      #"{"format":"vehicled-blocks","version":1}"# + "\n" + #"{"device":"ev","continues":false,"series":[],"block":"AAAA"}"# + "\n",
      "file:2: the block is damaged"
    ),
  ]) func `a mistake names its line and imports nothing`(_ text: String, _ message: String) throws {
    let rig = try HistoryRig()
    let directory = try Directory()
    defer { rig.stop() }
    let outcome = try rig.run("history", "import", try directory.write(text))
    #expect(outcome.status != 0 && outcome.stderr.contains(message), "\(outcome)")
    #expect(rig.changes.isEmpty)
  }

  @Test func `columns of CSV get the narrowest type, unless they are recorded`() throws {
    let rig = try HistoryRig()
    let directory = try Directory()
    defer { rig.stop() }
    let text = "time_us,ev.speed (km/h),ev.a,ev.b,ev.c,ev.d,ev.e\n1,1,1,1,true,x,\n2,2,2,2.5,false,\"y\nz\",\n"
    #expect(try rig.run("history", "import", try directory.write(text)).status == 0)
    let line = try #require(rig.changes.first.flatMap { BlockLine($0) })
    let types = Dictionary(line.series.map { ($0.property, $0.type) }, uniquingKeysWith: { first, _ in first })
    #expect(types == ["speed": "float", "a": "int", "b": "float", "c": "bool", "d": "string"])
    let missing = try rig.run("history", "import", "\(directory.path)/none")
    #expect(missing.status == 1 && missing.stderr.contains("No such file"))
    #expect(try rig.run("history", "import", directory.path).stderr.contains("not a regular file"))
  }
}
