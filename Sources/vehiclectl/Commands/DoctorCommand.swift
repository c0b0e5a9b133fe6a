// doctor: whether what the devices need is there, and how to mend what is not: first what can be seen without the daemon, then what the
// daemon knows. Exit 1 when something has failed, 3 when the daemon cannot be asked.

import ArgumentParser
import Protocols

struct DoctorCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Look for what is wrong with unit, socket, clock, disk, serial ports, Bluetooth and adapters, and name the mend.",
    discussion: "Changes nothing. Exit status 1 when something that a device needs has failed, 3 when the daemon does not run.")

  @OptionGroup var common: CommonOptions

  func perform(_ output: Output) throws {
    var findings = LocalChecks.findings(socket: common.socketPath)
    var failure: Failure?
    do throws(Failure) {
      findings += try common.connect(output).call(Contract.Diagnose.self, NoParameters()).findings
    } catch {
      failure = error
    }
    if output.json {
      output.json(["findings": .array(findings.map { JSON($0) })])
    } else {
      output.lines(findings.map { Self.line($0, paint: output.paint) })
    }
    if let failure { throw failure }
    if findings.contains(where: { $0.state == "failed" }) { throw ExitCode.failure }
  }

  static func line(_ finding: Contract.Finding, paint: (String, Style) -> String) -> String {
    let style: Style = finding.state == "ok" ? .good : finding.state == "failed" ? .bad : .bold
    let state = paint(Output.oneLine(finding.state), style) + String(repeating: " ", count: max(0, 7 - finding.state.count))
    return state + Output.oneLine("  \(finding.subject): \(finding.text)\(finding.remedy.map { "; \($0)" } ?? "")")
  }
}
