// Which calls pages may make. The lists are complete: a new method of a contract is not available to pages until it is added here.

import Protocols
import Testing
import Varlink

@testable import vehicled_web

@Suite("Rules for calls of pages") struct CallRulesTests {
  private func refusal(
    _ method: String, _ parameters: [String: String] = [:], to service: GatewayService = .daemon, control: Set<String> = ["ev"]
  ) throws -> ContractError? {
    let message = try VarlinkCall.message(method, JSON.texts(parameters)).dropLast()
    return CallRules.refusal(of: try VarlinkCall(Array(message)), to: service, Rights(control: control))
  }

  @Test func `a page that only observes can read, and nothing else`() throws {
    let allowed = try Contract.methods.map { $0.name }.filter {
      try refusal($0, ["device": "ev", "action": "stop", "property": "p"], control: []) == nil
    }
    #expect(
      Set(allowed) == [
        "io.vehicled.Status", "io.vehicled.Describe", "io.vehicled.Get", "io.vehicled.Watch", "io.vehicled.Diagnose",
        "io.vehicled.Statistics", "io.vehicled.Log", "io.vehicled.Record",
      ])
  }

  @Test func `a page that controls a device can set, call, connect and disconnect`() throws {
    let refused = try Contract.methods.map { $0.name }.filter { try refusal($0, ["device": "ev", "action": "stop"]) != nil }
    #expect(Set(refused) == ["io.vehicled.Drive", "io.vehicled.Scan", "io.vehicled.Reload", "io.vehicled.LogLevel"])
    for method in ["Set", "Call", "Connect", "Disconnect"] {
      let error = try refusal("io.vehicled.\(method)", ["device": "board"])
      #expect(error?.name == "org.varlink.service.PermissionDenied" && error?.message.contains("may not control board") == true)
      #expect(try refusal("io.vehicled.\(method)") == .invalidParameter(parameter: "device"))
    }
  }

  @Test func `a page can read the history, but not change it`() throws {
    let allowed = try HistoryContract.methods.map { $0.name }.filter { try refusal($0, ["device": "ev"], to: .history) == nil }
    #expect(
      Set(allowed) == Set(["Status", "Series", "Samples", "Plot", "Periods", "Period", "Alerts"].map { "io.vehicled.history.\($0)" }))
  }

  @Test func `a page cannot use a lease, or send raw queries`() throws {
    for method in ["io.vehicled.Set", "io.vehicled.Call"] {
      let error = try refusal(method, ["device": "ev", "action": "stop", "lease": "x"])
      #expect(error?.message.contains("pages cannot drive") == true)
    }
    #expect(try refusal("io.vehicled.Call", ["device": "ev", "action": "query"])?.message.contains("raw queries") == true)
    #expect(try refusal("io.vehicled.Call", ["device": "ev", "action": "dtc-clear"]) == nil)
  }

  @Test(arguments: ["io.vehicled.history.Status", "io.systemd.Machine.List", "Status", "", "io.vehicled.status", "io.vehicled.Status "])
  func `other methods are refused`(_ method: String) throws {
    #expect(try refusal(method)?.name == "org.varlink.service.PermissionDenied")
  }

  @Test func `both services describe themselves`() throws {
    for service in GatewayService.allCases {
      for method in VarlinkService.methods { #expect(try refusal(method.name, to: service, control: []) == nil) }
      #expect(try refusal("org.varlink.serviceX.GetInfo", to: service) != nil)
    }
  }

  @Test func `a text of a page cannot break a message`() throws {
    let message = try refusal("io.vehicled.Set", ["device": "x\n\u{1b}[2J" + String(repeating: "y", count: 500)])?.message ?? ""
    #expect(!message.contains { $0.isNewline || $0 == "\u{1b}" } && message.count < 250)
  }

  @Test func `a restored session names the remedy`() throws {
    let call = try VarlinkCall(Array(#"{"method":"io.vehicled.Set","parameters":{"device":"ev","property":"x","value":{"int":1}}}"#.utf8))
    let error = CallRules.refusal(of: call, to: .daemon, Rights(), withheld: ["ev"])
    #expect(error?.message.contains("sign in again") == true)
    #expect(CallRules.refusal(of: call, to: .daemon, Rights(), withheld: ["board"])?.message.contains("may not control ev") == true)
  }
}
