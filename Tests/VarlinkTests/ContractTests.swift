// The interface definition, the structs and the errors agree.

import Testing

@testable import Protocols
@testable import Varlink

@Suite struct ContractTests {
  static let vehicled = Interface.all[1]
  static let service = Interface.all[0]
  static let history = Interface.history
  static let errors: [ContractError] = [
    .noSuchDevice(device: "d"), .noSuchProperty(device: "d", property: "converter-voltage"), .noSuchAction(device: "d", action: "a"),
    .ambiguous(reference: "p", candidates: ["a.p", "b.p"]), .readOnly(device: "d", property: "p"), .outOfRange(property: "p", message: "m"),
    .notConnected(device: "d", reason: "r"), .busy(device: "d", holder: "h"), .leaseRequired(device: "d"),
    .leaseLost(device: "d", reason: "r"), .timeout(device: "d", milliseconds: 1500), .deviceError(device: "d", code: "c", message: "m"),
    .configurationInvalid(message: "m"), .interfaceNotFound(interface: "i"), .methodNotFound(method: "m"),
    .methodNotImplemented(method: "m"), .invalidParameter(parameter: "p"), .permissionDenied(), .expectedMore,
  ]

  @Test func `both interface definitions are parsed completely`() {
    #expect(Self.vehicled.name == "io.vehicled")
    #expect(Self.vehicled.types.count == 14 && Self.vehicled.methods.count == 16 && Self.vehicled.errors.count == 13)
    #expect(Self.service.name == "org.varlink.service" && Self.service.methods.count == 2 && Self.service.errors.count == 6)
    #expect(Self.vehicled.methods[2].output == [.init(name: "readings", type: "[]Reading")])
  }

  @Test func `every method has its struct with exactly the declared fields`() {
    func fields<T: VarlinkParameters>(_ type: T.Type) -> [String] { T.CodingKeys.allCases.map(\.stringValue) }
    func check<M: VarlinkMethod>(_ method: M.Type, _ declared: Interface.Member?) {
      #expect(fields(M.Parameters.self) == declared?.input.map(\.name), "\(M.name)")
      #expect(fields(M.Result.self) == declared?.output.map(\.name), "\(M.name)")
    }
    let all = [(Self.vehicled, Contract.methods), (Self.service, VarlinkService.methods), (Self.history, HistoryContract.methods)]
    for (interface, methods) in all {
      #expect(methods.map { $0.name } == interface.methods.map { "\(interface.name).\($0.name)" })
      for method in methods { check(method, interface.methods.first { "\(interface.name).\($0.name)" == method.name }) }
    }
  }

  /// systemd's varlinkctl rejects an interface otherwise, and the PyPI package `varlink` forgets the first of two.
  @Test func `types, methods and errors of an interface have different names`() {
    for interface in [Self.vehicled, Self.service, Self.history] {
      let names = (interface.types + interface.methods + interface.errors).map(\.name)
      #expect(Set(names).count == names.count, "\(interface.name)")
    }
  }

  @Test func `every type has its struct with exactly the declared fields`() {
    let structs: [(String, any VarlinkParameters.Type)] = [
      ("Reading", Contract.Reading.self), ("Link", Contract.Link.self), ("Device", Contract.Device.self),
      ("Property", Contract.Property.self),
      ("Argument", Contract.Argument.self), ("Action", Contract.Action.self), ("Schema", Contract.Schema.self),
      ("Event", Contract.Event.self), ("Row", Contract.Row.self), ("Discovery", Contract.Discovery.self),
      ("Finding", Contract.Finding.self), ("Statistic", Contract.Statistic.self), ("LogRecord", Contract.LogRecord.self),
    ]
    func fields<T: VarlinkParameters>(_ type: T.Type) -> [String] { T.CodingKeys.allCases.map(\.stringValue) }
    let history: [(String, any VarlinkParameters.Type)] = [
      ("RecordedSeries", HistoryContract.Series.self), ("Sample", HistoryContract.Sample.self),
      ("PlotPoint", HistoryContract.PlotPoint.self),
      ("Quantity", HistoryContract.Quantity.self), ("RecordedPeriod", HistoryContract.Period.self), ("Pause", HistoryContract.Pause.self),
      ("CurvePoint", HistoryContract.CurvePoint.self), ("Alert", HistoryContract.Alert.self),
    ]
    for (interface, structs) in [(Self.vehicled, structs), (Self.history, history)] {
      for type in interface.types where type.name != "Value" {
        let type = (type, structs.first { $0.0 == type.name }?.1)
        #expect(type.1.map { fields($0) } == type.0.input.map(\.name), "\(type.0.name)")
      }
    }
    #expect(ValueType.allCases.map(\.rawValue) == Self.vehicled.types[0].input.map(\.name))
  }

  @Test func `every error is declared with its parameters and round-trips`() throws {
    let declared = [Self.vehicled, Self.service].flatMap { interface in
      interface.errors.map { ("\(interface.name).\($0.name)", $0.input) }
    }
    #expect(Self.errors.map(\.name) == declared.map(\.0))
    for (error, (_, fields)) in zip(Self.errors, declared) {
      let members: [JSON.Member] = if case .object(let members) = error.parameters { members } else { [] }
      #expect(members.map(\.key) == fields.map(\.name), "\(error.name)")
      for field in fields {
        switch (error.parameters[field.name], field.type.drop { $0 == "?" }) {
        case (.string, "string"), (.int, "int"), (.array, "[]string"): break
        case (let value, let type): Issue.record("\(error.name).\(field.name) is \(String(describing: value)), declared \(type)")
        }
      }
      let reply = try VarlinkReply(Array(VarlinkReply.message(error).dropLast()))
      let parameters = try reply.parameters(as: JSON.self)
      #expect(ContractError(name: try #require(reply.error), parameters: parameters) == error)
    }
    #expect(ContractError(name: "io.vehicled.Other", parameters: [:]) == nil)
    #expect(ContractError(name: "io.vehicled.Busy", parameters: ["device": .int(1)]) == nil)
  }

  @Test func `every error of the history is declared with its parameters and round-trips`() throws {
    let errors: [HistoryContractError] = [
      .notRecorded(device: "ev", property: "speed", known: ["rpm"]), .noSuchPeriod(number: 7),
      .invalidArgument(argument: "start", message: "m"), .storeError(code: "disk-full", message: "m"),
    ]
    #expect(errors.map(\.name) == Self.history.errors.map { "io.vehicled.history.\($0.name)" })
    for (error, declared) in zip(errors, Self.history.errors) {
      let members: [JSON.Member] = if case .object(let members) = error.parameters { members } else { [] }
      #expect(members.map(\.key) == declared.input.map(\.name), "\(error.name)")
      let reply = try VarlinkReply(Array(VarlinkReply.message(error: error).dropLast()))
      #expect(HistoryContractError(name: try #require(reply.error), parameters: try reply.parameters(as: JSON.self)) == error)
    }
    #expect(HistoryContractError(name: "io.vehicled.history.NoSuchPeriod", parameters: ["number": .string("7")]) == nil)
  }

  @Test func `every error has its exit status and a message of one line`() {
    let codes: [Int32] = [4, 4, 4, 2, 2, 2, 5, 1, 1, 1, 6, 1, 1, 2, 2, 1, 2, 7, 2]
    #expect(Self.errors.map(\.exitCode) == codes)
    for error in Self.errors { #expect(!error.message.isEmpty && !error.message.contains("\n")) }
    #expect(ContractError.timeout(device: "ev", milliseconds: 1500).message.hasPrefix("ev did not respond within 1.5 s; "))
    #expect(
      ContractError.ambiguous(reference: "rpm", candidates: ["a.rpm", "b.rpm"]).message.hasPrefix("\"rpm\" is ambiguous: a.rpm, b.rpm; "))
    let missing = ContractError.permissionDenied(missing: "to see one must be root")
    #expect(missing.message == "permission denied: to see one must be root")
    #expect(ContractError(name: missing.name, parameters: missing.parameters) == missing)
    #expect(ContractError.permissionDenied().message.contains("add your user to group vehicled"))
  }

  @Test func `declarations round-trip over the socket`() throws {
    let schema = Schema(
      properties: [
        Property("led", .int, unit: "%", range: 0...100, access: .write, help: "h"),
        Property("mode", .string, choices: ["a", "b"], help: "h"),
        Property("throttle", .float, range: -1...1, access: .motion, help: "h"), Property("x", .float, range: 0 ... .infinity, help: "h"),
      ],
      actions: [
        Action("query", arguments: [Argument("request", .string, optional: true, secret: true, help: "h")], streams: true, help: "h")
      ])
    let sent = Contract.Describe.Result(schemas: [Contract.Schema(device: "ev", kind: "obd", schema)])
    let reply = try VarlinkReply(Array(VarlinkReply.message(sent).dropLast()))
    let received = try reply.parameters(as: Contract.Describe.Result.self)
    #expect(received == sent)
    #expect(received.schemas[0].properties.map { Property($0) } == schema.properties)
    #expect(received.schemas[0].actions.map { Action($0) } == schema.actions)
  }

  @Test(arguments: [(#""type":"colour""#, ""), (#""type":"int""#, #","minimum":5,"maximum":1"#)])
  func `invalid declarations are rejected`(_ type: String, _ range: String) throws {
    let text = #"{"parameters":{"name":"x",\#(type),"writable":true,"motion":false,"help":""\#(range)}}"#
    let property = try VarlinkReply(Array(text.utf8)).parameters(as: Contract.Property.self)
    #expect(Property(property) == nil)
  }
}
