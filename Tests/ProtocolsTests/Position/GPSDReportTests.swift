import Testing

@testable import Protocols

/// Lines of gpsd, of several versions, incomplete and damaged.
@Suite("Reports of gpsd") struct GPSDReportTests {
  private static func fix(_ members: String) -> GPSDFix? {
    guard case .fix(let fix)? = report("{\"class\":\"TPV\",\(members)}") else { return nil }
    return fix
  }
  private static func report(_ line: String) -> GPSDReport? { GPSDReport(Array(line.utf8)) }

  /// A report of gpsd 3.22 with an NMEA 0183 receiver.
  static let recorded =
    #"{"class":"TPV","device":"/dev/pts/1","mode":3,"time":"2026-06-01T12:00:17.000Z","ept":0.005,"lat":63.430000000,"#
    + #""lon":10.391700000,"altHAE":163.0000,"altMSL":123.0000,"alt":123.0000,"epv":34.500,"track":90.0000,"magtrack":93.6456,"#
    + #""magvar":3.6,"speed":15.022,"climb":0.000,"epc":69.00,"geoidSep":40.000,"eph":19.000,"sep":34.200}"#

  @Test func `a fix of gpsd 3_22 is decoded`() throws {
    guard case .fix(let fix)? = Self.report(Self.recorded) else { throw ValueError("no fix") }
    #expect(fix.receiver == "/dev/pts/1" && fix.mode == .threeD && fix.time == "2026-06-01T12:00:17.000Z" && fix.hasPosition)
    let values: [PositionProperty: Double] = [
      .latitude: 63.43, .longitude: 10.3917, .altitude: 123, .speed: 54.1, .track: 90, .horizontalAccuracy: 19, .verticalAccuracy: 34.5,
    ]
    for (property, value) in values { #expect(fix[property] == value, "\(property)") }
  }

  @Test func `coordinates have seven decimals`() {
    #expect(Self.fix(#""mode":2,"lat":-33.123456789,"lon":-179.99999996"#)?[.latitude] == -33.1234568)
    #expect(Self.fix(#""mode":2,"lat":-33.123456789,"lon":-179.99999996"#)?[.longitude] == -180)
  }

  @Test(
    arguments: [
      (#""mode":3,"alt":120"#, PositionProperty.altitude, 120.0), (#""mode":3,"altMSL":120,"alt":99"#, .altitude, 120),
      (#""mode":3,"altHAE":160,"alt":160"#, .altitude, nil), (#""mode":2,"altMSL":120"#, .altitude, nil),
      (#""mode":3,"altMSL":1e9"#, .altitude, nil), (#""mode":3,"epx":3,"epy":4"#, .horizontalAccuracy, 5),
      (#""mode":3,"eph":7,"epx":3,"epy":4"#, .horizontalAccuracy, 7), (#""mode":3,"epx":3"#, .horizontalAccuracy, nil),
      (#""mode":3,"speed":10"#, .speed, 36), (#""mode":3,"speed":"10""#, .speed, nil), (#""mode":3,"speed":-1"#, .speed, nil),
      (#""mode":3,"track":361"#, .track, nil), (#""mode":1,"lat":5"#, .latitude, nil), (#""mode":0,"lat":5"#, .latitude, nil),
      (#""lat":5"#, .latitude, nil), (#""mode":2,"lat":91"#, .latitude, nil), (#""mode":2,"lat":null"#, .latitude, nil),
      (#""mode":9,"altMSL":5"#, .altitude, 5), (#""mode":-1,"lat":5"#, .latitude, nil),
    ] as [(String, PositionProperty, Double?)]) func `versions differ, and implausible numbers are absent`(
      _ members: String, _ property: PositionProperty, _ value: Double?
    )
  {
    #expect(Self.fix(members) != nil)
    #expect(Self.fix(members)?[property] == value)
  }

  @Test func `numbers that are not finite are absent`() {
    let fix = Self.fix(#""mode":3,"lat":5.5,"lon":-1e1,"speed":nan,"track":-NaN,"epv":inf,"eph":-Infinity,"altMSL":12"#)
    #expect(fix?.hasPosition == true && fix?[.longitude] == -10 && fix?[.altitude] == 12)
    for property in [PositionProperty.speed, .track, .verticalAccuracy, .horizontalAccuracy] { #expect(fix?[property] == nil) }
    // Within a string it is text, even after an escaped quotation mark.
    #expect(Self.fix(#""device":"\"nan:nan","mode":2,"speed":nan"#)?.receiver == "\"nan:nan")
  }

  @Test(
    arguments: [
      (#""time":"2026-06-01T12:00:17.000Z""#, "2026-06-01T12:00:17.000Z"), (#""time":1780315217.5"#, "2026-06-01T12:00:17Z"),
      (#""time":"yesterday""#, nil), (#""time":-5"#, nil), (#""time":1e300"#, nil), (#""time":[]"#, nil), (#""mode":1"#, nil),
    ] as [(String, String?)]) func `the time of a fix`(_ member: String, _ time: String?)
  { #expect(Self.fix(member).map(\.time) == .some(time)) }

  @Test func `receivers`() {
    let list = #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/a"},{"path":""},{"path":7},{"path":"tcp://h:1"}]}"#
    #expect(Self.report(list) == .receivers(["/dev/a", "tcp://h:1"]))
    #expect(Self.report(#"{"class":"DEVICES"}"#) == .receivers([]))
    #expect(Self.report(#"{"class":"DEVICE","path":"/dev/a","activated":0}"#) == .receiver("/dev/a", isActive: false))
    #expect(
      Self.report(#"{"class":"DEVICE","path":"/dev/a","activated":"2026-06-01T12:00:17.000Z"}"#) == .receiver("/dev/a", isActive: true))
    #expect(Self.report(#"{"class":"DEVICE","path":"/dev/a","activated":1780315217.5}"#) == .receiver("/dev/a", isActive: true))
    #expect(Self.report(#"{"class":"DEVICE"}"#) == .other)
  }

  @Test(
    arguments: [
      (#""nSat":14,"uSat":9"#, 9, 14), (#""satellites":[{"PRN":1,"used":true},{"PRN":2,"used":false}]"#, 1, 2), (#""hdop":1.1"#, nil, nil),
      (#""nSat":14,"uSat":-9"#, nil, 14), (#""nSat":1e9,"satellites":{}"#, 0, nil),
    ] as [(String, Int?, Int?)]) func `satellites`(_ members: String, _ used: Int?, _ seen: Int?) throws
  {
    guard case .sky(let sky)? = Self.report("{\"class\":\"SKY\",\(members)}") else { throw ValueError("no sky") }
    #expect(sky.used == used && sky.seen == seen)
  }

  @Test func `other lines`() {
    #expect(Self.report(#"{"class":"VERSION","release":"3.22","proto_major":3}"#) == .version("3.22"))
    #expect(Self.report(#"{"class":"ERROR","message":"a\u0007b"}"#) == .error("ab"))
    #expect(Self.report(#"{"class":"PPS"}"#) == .other && Self.report(#"{"class":"WATCH","enable":true}"#) == .other)
    for line in ["", "x", "{}", "[]", "7", #"{"class":7}"#, #"{"class":"TPV""#, #"{"class":"TPV","class":"SKY"}"#, "nan"] {
      #expect(Self.report(line) == nil, "\(line)")
    }
  }

  @Test func `lines are found at every split`() {
    let text = Array("one\r\n\r\ntwo\n\nthree".utf8)
    for split in 0...text.count {
      var lines = GPSDLines()
      var found: [[UInt8]?] = []
      for part in [text[..<split], text[split...]] { lines.add(Array(part)) { found.append($0) } }
      lines.add(Array("!\n".utf8)) { found.append($0) }
      #expect(found == ["one", "two", "three!"].map { Array($0.utf8) })
    }
  }

  @Test func `a line that is too long is skipped, and reported once`() {
    var lines = GPSDLines()
    var found: [[UInt8]?] = []
    for _ in 0..<100 { lines.add([UInt8](repeating: 0x78, count: 1024)) { found.append($0) } }
    #expect(found == [nil])
    lines.add(Array("\nok\n".utf8)) { found.append($0) }
    #expect(found == [nil, Array("ok".utf8)])
  }

  @Test func `mutated lines yield only values in range`() {
    var dice = OBDRobustnessTests.Dice(state: 0x6950_5EED_1234_5678)
    let lines = [
      Self.recorded, #"{"class":"SKY","device":"/dev/a","nSat":12,"uSat":9,"satellites":[{"PRN":1,"used":true}]}"#,
      #"{"class":"DEVICES","devices":[{"class":"DEVICE","path":"/dev/a","activated":0}]}"#,
    ].map { Array($0.utf8) }
    var (whole, broken) = (0, 0)
    for turn in 0..<5000 {
      var machine = PositionMachine()
      var effects = Effects()
      machine.handle(.linkChanged(.main, .up(maximumSend: nil)), at: 1, &effects)
      machine.handle(.received(.main, Array("{\"class\":\"VERSION\"}\n".utf8)), at: 1, &effects)
      effects.removeAll()
      let line = OBDRobustnessTests.mutate(lines[turn % lines.count], &dice)
      if GPSDReport(line) != nil { whole += 1 } else { broken += 1 }
      machine.handle(.received(.main, line + [lineFeed]), at: 2, &effects)
      for reading in effects.readings {
        guard case .value(let value) = reading.content else { continue }
        let property = machine.schema.properties[reading.property]
        if (try? property.rule.accept(value)) != value { Issue.record("\(property.name): \(value)") }
      }
    }
    #expect(whole > 500 && broken > 500)
  }
}
