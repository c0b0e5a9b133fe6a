// The method Log: the latest log records, for clients that cannot read the journal.

import Logging
import Protocols
import ServiceRuntime
import Varlink

extension Methods {
  func log(_ call: Call) throws {
    let parameters = try call.request.parameters(as: Contract.Log.Parameters.self)
    guard let level = parameters.level.map(Logger.Level.init(rawValue:)) ?? .info else {
      throw ContractError.invalidParameter(parameter: "level")
    }
    if let device = parameters.device { _ = try state(of: device, for: call) }
    let isWanted = { @Loop (record: LogRing.Record) -> Bool in
      guard record.level >= level else { return false }
      if let device = parameters.device { return record.device == device }
      return record.device.map { call.rights.canSee($0) } ?? call.rights.include(.observe, on: .daemon)
    }
    let stored = Contract.Log.Result(records: LogRing.shared.records.filter(isWanted).map(\.contract))
    guard call.request.more else { return call.reply(stored) }
    call.isStream = true
    call.continue(stored)
    var omitted = 0
    let observer = LogRing.shared.observe { [weak call] record in
      guard let call, isWanted(record) else { return }
      guard call.hasRoom else { return omitted += 1 }
      call.continue(Contract.Log.Result(records: [record.contract], omitted: omitted == 0 ? nil : omitted))
      omitted = 0
    }
    call.cancel = { LogRing.shared.remove(observer) }
    guard parameters.device == nil else { return }
    // The stream continues while the client may still see everything that it saw before.
    call.adaptToRights = { [weak call] rights in
      guard let before = call?.rights else { return false }
      return before.visibleDevices.map { $0.allSatisfy(rights.canSee) } ?? (rights.visibleDevices == nil)
    }
  }
}

extension LogRing.Record {
  fileprivate var contract: Contract.LogRecord {
    Contract.LogRecord(
      time: Int(wall), level: level.rawValue, device: device, link: link, message: message, details: details.isEmpty ? nil : details)
  }
}
