"""Header rows from real files, with the field that each column should be mapped to; `-` means none."""

from __future__ import annotations

INVOICE_ROWS = """
Vendor=supplier; Inv #=invoice_number; Inv Date=invoice_date; Due Dt=due_date; Amt=gross; Notes=-
SUPPLIER NAME=supplier; INVOICE NO.=invoice_number; DATE=invoice_date; NET AMT=net; TAX AMT=vat; TOTAL AMT=gross
Lieferant=supplier; Rg.-Nr.=-; Rechnungsdatum=invoice_date; Netto=net; MwSt=vat; Brutto=gross; Währung=currency
Kreditor=supplier; Belegnr=invoice_number; Belegdatum=invoice_date; Fälligkeit=due_date; Betrag=gross; Konto=-
Fournisseur=supplier; Facture N°=invoice_number; Date=invoice_date; Montant HT=net; TVA=vat; Montant TTC=gross
Company=supplier; Document Number=invoice_number; Document Date=invoice_date; Amount due (USD)=gross; Approved by=-
vendor_name=supplier; invoice_id=invoice_number; invoice_date=invoice_date; payment_due=due_date; invoice_total=gross
VendorName=supplier; InvoiceNumber=invoice_number; IssueDate=invoice_date; GrossAmount=gross; CurrencyCode=currency
Suplier=supplier; Invoce Number=invoice_number; Invoice Dat=invoice_date; Gros amount=gross; PO=purchase_order
Payee=supplier; Bill No=invoice_number; Billing date=invoice_date; Pay by=due_date; Subtotal=net
Payee=supplier; Bill No=invoice_number; Sales tax=vat; Total=gross
Supplier=supplier; Supplier No.=-; Invoice=invoice_number; Date=invoice_date; Gross [EUR]=gross
Supplier=supplier; Supplier No.=-; VAT %=-; VAT [EUR]=vat
Vendor=supplier; Vendor ID=-; Invoice number=invoice_number; Issued=invoice_date
Vendor=supplier; Vendor ID=-; Total incl. VAT=gross; PO number=purchase_order
Creditor=supplier; Our reference=-; Invoice no=invoice_number; Date of invoice=invoice_date
Creditor=supplier; Our reference=-; Net EUR=net; Gross EUR=gross
Firma=supplier; Rechnungsnummer=invoice_number; Datum=invoice_date; Zahlbar bis=due_date; Rechnungsbetrag in €=gross
Vendor=supplier; Order number=purchase_order; Invoice #=invoice_number; Invoice date=invoice_date
Vendor=supplier; Order number=purchase_order; Quantity=-; Amount=gross
"""
ROSTER_ROWS = """
Emp ID=employee_id; First Name=first_name; Last Name=last_name; Dept=department; Title=job_title; Hire Date=start_date
Employee No.=employee_id; Name=name; Department=department; Position=job_title
Employee No.=employee_id; Name=name; Joined=start_date; Salary=annual_salary
Staff number=employee_id; Surname=last_name; Forename=first_name; Team=department
Staff number=employee_id; Surname=last_name; Role=job_title; E-mail address=email
Personalnr.=employee_id; Name=name; Abteilung=department; Funktion=job_title
Personalnr.=employee_id; Name=name; Eintritt=start_date; Gehalt=annual_salary
Personalnummer=employee_id; Nachname=last_name; Vorname=first_name; Geburtsdatum=-
Personalnummer=employee_id; Nachname=last_name; Eintrittsdatum=start_date; Telefon=-
Matricule=employee_id; Nom=last_name; Prénom=first_name; Service=department; Poste=job_title; Salaire=annual_salary
ID=employee_id; Full name=name; Cost centre=department; Job=job_title; Start date=start_date; End date=-; Email=email
payroll_number=employee_id; employee_name=name; hours_per_week=weekly_hours; base_salary=annual_salary; manager=-
EmployeeID=employee_id; GivenName=first_name; FamilyName=last_name; JobTitle=job_title; ContractHours=weekly_hours
Staff ID=employee_id; Employee=name; Date of birth=-; Date of hire=start_date
Staff ID=employee_id; Employee=name; Hrs/week=weekly_hours; Gross salary (EUR)=annual_salary
Employe number=employee_id; Full Nmae=name; Departement=department; Postion=job_title
Employe number=employee_id; Full Nmae=name; Hiring date=start_date; Mail=email
"""
EXAMPLES: dict[str, tuple[object, ...]] = {
    "supplier": ("Acme Ltd", "Müller GmbH", "Fjord AS"),
    "invoice_number": ("INV-1001", "2026/17", "88121"),
    "invoice_date": ("2026-01-05", "2026-01-17", "2026-02-03"),
    "due_date": ("2026-02-05", "2026-02-17", "2026-03-03"),
    "net": (100, 250.5, 80),
    "vat": (20, 50.1, 16),
    "gross": (120, 300.6, 96),
    "currency": ("EUR", "EUR", "USD"),
    "purchase_order": ("PO-1001", "PO-1002", "PO-1003"),
    "employee_id": ("1001", "1002", "1003"),
    "first_name": ("Anna", "Piotr", "Grace"),
    "last_name": ("Weiß", "Nowak", "Okafor"),
    "name": ("Anna Weiß", "Piotr Nowak", "Grace Okafor"),
    "department": ("Sales", "Sales", "IT"),
    "job_title": ("Clerk", "Engineer", "Manager"),
    "start_date": ("2019-05-01", "2021-11-15", "2003-07-01"),
    "weekly_hours": (40, 38.5, 20),
    "annual_salary": (36500, 44000, 52000),
    "email": ("a@x.example", "b@x.example", "c@x.example"),
}
OTHERS: dict[str, tuple[object, ...]] = {
    "VAT %": (0.2, 0.19, 0.2),
    "Quantity": (1, 5, 12),
    "Geburtsdatum": ("1971-04-03", "1988-09-17", "1990-01-01"),
    "Date of birth": ("1971-04-03", "1988-09-17", "1990-01-01"),
    "End date": ("2027-04-03", "2028-09-17", "2027-01-01"),
}


def labelled(rows: str) -> list[list[tuple[str, str]]]:
    """Return each row as pairs of header and field."""
    return [
        [(header.strip(), field.strip()) for header, _, field in (pair.rpartition("=") for pair in line.split(";"))]
        for line in rows.strip().splitlines()
    ]


def examples(header: str, field: str) -> tuple[object, ...]:
    """Return sample values for a column with this header and field."""
    return EXAMPLES.get(field) or OTHERS.get(header) or ("see file", "ok", "call again")
