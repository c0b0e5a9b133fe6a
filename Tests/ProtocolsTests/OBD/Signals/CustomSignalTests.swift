// Custom signals: addresses, values, and every mistake at its key.

import Testing

@testable import Protocols

@Suite struct CustomSignalTests {
  private func section(_ options: [String: Value], _ name: String = "mine") -> Setup.Subsection {
    Setup.Subsection(name, ["request": .string("220101"), "value": .string("A")].merging(options) { $1 })
  }

  private func signal(_ options: [String: Value], allowRaw: Bool = false) -> CustomSignal? {
    var problems: [OptionError] = []
    return CustomSignal(section(options), of: Setup(options: ["allow-raw": .bool(allowRaw)]), &problems)
  }

  private func problems(_ options: [String: Value], _ name: String = "mine") -> [OptionError] {
    CustomSignal.section.check?(section(options, name), Setup(device: "ev")) ?? []
  }

  private func read(_ options: [String: Value], _ data: [UInt8]) throws -> Decoded {
    let row = try #require(signal(options)).row
    return data.withUnsafeBufferPointer { row.read($0) }
  }

  @Test func `request and response address follow from the request`() throws {
    let own = try #require(signal([:]))
    #expect(own.header.text == "7E0" && own.reply?.text == "7E8" && own.request.responsePrefix == [0x62, 0x01, 0x01])
    let standard = try #require(signal(["request": .string("01 0c")]))
    #expect(standard.header == .functional && standard.reply == nil && standard.request.responsePrefix == [0x41, 0x0C])
    let battery = try #require(signal(["header": .string("7e4"), "request": .string("0x2101")]))
    #expect(battery.header.text == "7E4" && battery.reply?.text == "7EC" && battery.request.responsePrefix == [0x61, 0x01])
    let long = try #require(signal(["header": .string("18DA10F1")]))
    #expect(long.header.is29Bit && long.reply?.text == "18DAF110")
    let explicit = try #require(signal(["header": .string("744"), "reply": .string("74D")]))
    #expect(explicit.reply?.text == "74D")
    #expect(CANIdentifier("18DB33F1")?.reply == nil && CANIdentifier("7FF")?.reply == nil)
    #expect(CANIdentifier("800") == nil && CANIdentifier("20000000") == nil && CANIdentifier("7E") == nil && CANIdentifier("7G4") == nil)
  }

  @Test func `a request of any service and length is rejected, or accepted with the prefix of its response`() {
    for service in UInt8.min...UInt8.max {
      for count in 1...8 {
        let bytes = [service] + (1..<count).map { UInt8($0) }
        guard let request = try? SignalRequest(spacedHex(bytes), allowRaw: true) else { continue }
        #expect(
          request.bytes == bytes && request.responsePrefix.first == service + 0x40
            && request.responsePrefix.dropFirst().elementsEqual(bytes[1..<request.responsePrefix.count]))
      }
    }
    for request in ["04", "14FFFFFF", "1101"] { #expect(signal(["request": .string(request)], allowRaw: true) == nil, "\(request)") }
    for request in ["03", "07", "0A"] {
      #expect(signal(["request": .string(request)])?.request.responsePrefix == [0x40 + UInt8(request, radix: 16)!], "\(request)")
    }
  }

  @Test func `a signal is a property like any other`() throws {
    let property = try #require(
      signal(["type": .string("int"), "unit": .string("°C"), "min": .float(-40), "max": .float(215), "period": .float(5)])
    ).row.property
    #expect(
      property
        == Property("mine", .int, unit: "°C", range: -40...215, lifetime: .fresh(15 * .second), help: "Custom signal: A of 220101"))
    #expect(try #require(signal(["period": .float(0.05)])).period == 50 * .millisecond)
    let open = try #require(signal(["max": .float(5)])).row.property
    #expect(open.range == -.infinity...5)
  }

  @Test func `a response becomes a value of its type`() throws {
    #expect(try read([:], [7]) == .value(.float(7)))
    #expect(try read(["value": .string("A*0.1")], [3]) == .value(.float(0.3)))
    #expect(try read(["value": .string("A/3"), "type": .string("int")], [11]) == .value(.int(4)))
    #expect(try read(["value": .string("A & 4"), "type": .string("bool")], [6]) == .value(.bool(true)))
    #expect(try read(["value": .string("A & 4"), "type": .string("bool")], [3]) == .value(.bool(false)))
    #expect(try read(["value": .string("-A/1000000000")], [3]) == .value(.float(-3e-9)))
  }

  @Test func `a signal has decimals, labels, a length, a condition and a lifetime like a built-in property`() throws {
    #expect(try read(["value": .string("A/7"), "decimals": .int(2)], [3]) == .value(.float(0.43)))
    let gear: [String: Value] = ["type": .string("string"), "labels": .list(["1: park", "0x2:drive", "4:  neutral: N"])]
    #expect(problems(gear).map(\.option) == ["labels"])
    let labels: [String: Value] = ["type": .string("string"), "value": .string("A & 15"), "labels": .list(["1: park", "4:  neutral: N"])]
    #expect(try read(labels, [0x21]) == .value(.string("park")) && read(labels, [4]) == .value(.string("neutral: N")))
    #expect(try read(labels, [3]) == .absent(.undefined))
    #expect(try #require(signal(labels)).row.property.choices == ["neutral: N", "park"])
    let exact: [String: Value] = ["length": .int(2), "valid": .string("B < 3")]
    #expect(try read(exact, [7, 2]) == .value(.float(7)) && read(exact, [7, 2, 1]) == .absent(.notReported))
    #expect(try read(exact, [7, 3]) == .absent(.implausible) && read(exact, [7]) == .absent(.implausible))
    #expect(try #require(signal(["retained": .bool(true)])).row.property.lifetime == .retained)
  }

  @Test func `mistakes in these keys are reported with their remedy`() {
    let found = problems([
      "decimals": .int(1), "type": .string("int"), "labels": .list(["1: a", "b", "1: c", "2:"]), "valid": .string("A = 1"),
    ])
    #expect(found.map(\.option) == ["valid", "labels", "labels", "labels", "labels", "decimals"])
    #expect(found.first?.offset == 2 && found.allSatisfy { $0.message.contains("; ") }, "\(found)")
    #expect(problems(["type": .string("string")]).map(\.option) == ["type"])
    #expect(problems(["type": .string("string"), "labels": .list([])]).map(\.option) == ["labels"])
    #expect(problems(["type": .string("string"), "labels": .list(["1: a"]), "max": .float(1)]).map(\.option) == ["max"])
  }

  @Test func `an impossible value is absent with its reason`() throws {
    #expect(try read([:], []) == .absent(.notReported))
    #expect(try read(["value": .string("1/A")], [0]) == .absent(.undefined))
    #expect(try read(["min": .float(1)], [0]) == .absent(.outOfRange))
    #expect(try read(["max": .float(1), "type": .string("int")], [2]) == .absent(.outOfRange))
    #expect(try read(["value": .string("A*1e300"), "type": .string("int")], [2]) == .absent(.undefined))
    #expect(!Absence.outOfRange.message.isEmpty)
  }

  @Test(arguments: [
    "04", "08", "10", "11", "14", "27", "2E", "2F", "31", "3E", "85", "010C0D", "22F190F1", "2201", "03 01", "21", "0902 01", "1A",
    "", "0", "220", "xyz", "22 01 0G", "2201010203040506",
  ])
  func `requests that write or are ambiguous are rejected`(_ request: String) throws {
    let found = problems(["request": .string(request)])
    #expect(found.count == 1 && found.first?.option == "request", "\(found)")
  }

  @Test func `an allowed request is sent`() throws {
    #expect(problems(["request": .string("2F010203")]).first?.message.contains("allow-raw = true for every device") == true)
    let raw = try #require(signal(["request": .string("2F010203")], allowRaw: true))
    #expect(raw.request.responsePrefix == [0x6F] && raw.header == .engine)
    #expect(signal(["request": .string("FF01")], allowRaw: true) == nil)
    // Clearing of trouble codes is never polled, whatever is allowed.
    #expect(signal(["request": .string("04")], allowRaw: true) == nil)
    #expect(problems(["request": .string("04")]).first?.message.contains("vehiclectl dtc clear") == true)
  }

  @Test func `every mistake is reported with key and character`() {
    let found = problems([
      "request": .string("nothing"), "value": .string("A + foo"), "header": .string("7E"), "reply": .string("x"), "min": .float(5),
      "max": .float(1), "unit": .string("a unit that is much too long"), "help": .string("a\nb"),
    ])
    #expect(found.map(\.option) == ["request", "value", "header", "reply", "max", "unit", "help"])
    #expect(found.map(\.offset) == [nil, 4, nil, nil, nil, nil, nil])
    #expect(problems(["type": .string("bool"), "min": .float(0)]).map(\.option) == ["min"])
    #expect(problems(["header": .string("7E4"), "reply": .string("18DAF110")]).map(\.option) == ["reply"])
    var missing: [OptionError] = []
    #expect(CustomSignal(Setup.Subsection("x", [:]), of: Setup(), &missing) == nil)
    #expect(missing.map(\.option) == [nil, nil] && missing[0].message.hasPrefix("request is missing"))
  }

  @Test func `a property of the kind keeps its name`() {
    let found = problems([:], "rpm")
    #expect(found.count == 1 && found[0].option == nil && found[0].message.contains("give the signal another name"))
  }

  @Test func `the kind passes signals to its machine`() throws {
    let setup = Setup(sections: ["signal": [section([:]), section(["value": .string("B")], "other")]])
    let machine = try #require(try Kind.obd.make(setup) as? OBDMachine)
    let rows = machine.router.vehicle.polling.scheduler.queue.requests.flatMap { $0.rows }
    #expect(rows.map { $0.dataRow.property.name } == ["mine", "other"])
    #expect(throws: OptionError.self) { _ = try Kind.obd.make(Setup(sections: ["signal": [section(["value": .string("")])]])) }
  }
}
